#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch redact: a copy without secrets, that says so; of damaged and cut bundles too, which do not look whole then.
. "$(dirname "$0")/lib.sh"
programs=$(cd "$(dirname "$0")/../programs/secrets" && pwd)
unpacked=$ETCH_BUILD/tests/unpacked
cd "$work"
unset ETCH_POLICY
export HOME=$work LEAK=qzjxvkw LEAK_TOKEN=qzjxvkw-environment
[ ! -e /etc/etch/policy ] || skip "this machine has a policy of its own"
"$ETCH" c++ -std=c++17 -g -O0 "$programs/leak.cpp" -o leakpp -pthread
printf 'allow all\n' >nothing
"$ETCH" record --source none --keep-stack --policy nothing -o in.etch -- ./leakpp --password=qzjxvkw >/dev/null 2>&1 || true
"$unpacked" in.etch >bytes
for what in password=qzjxvkw qzjxvkw-environment qzjxvkw-local qzjxvkw-what; do
  grep -qaF -- "$what" bytes || fail "the bundle has no $what: the test proves nothing"
done
expect 0 "$ETCH" info --secrets in.etch
has out "1 look like secrets"

# clean FILE
clean() {
  checks=$((checks + 1))
  "$unpacked" "$1" >bytes || fail "$1 cannot be unpacked"
  cat "$1" >>bytes
  ! grep -aob 'qzjxv' bytes >&2 || fail "$1 holds the secret"
}

# ---- A copy
umask 0
expect 0 "$ETCH" redact in.etch out.etch
umask 022
clean out.etch
[ "$(stat -c %a out.etch)" = 600 ] || fail "the copy may be read by others"
expect 0 "$ETCH" info --verify out.etch
expect 0 "$ETCH" info out.etch
has out "by etch redact, policy built-in"
has out "--password=***"
# all else is there
"$ETCH" info --json in.etch >in.json
"$ETCH" info --json out.etch >out.json
checks=$((checks + 1))
python3 - <<'END' || fail "the copy lacks something"
import json
a, b = json.load(open('in.json')), json.load(open('out.json'))
for key in ('host', 'outcome', 'threads', 'images', 'clocks', 'streams', 'watches', 'syncs', 'switches', 'losses'):
    assert a[key] == b[key], key
assert a['records'] + 1 == b['records']
assert len(b['redactions']) == 2 and b['redactions'][1]['afterwards'] and b['redactions'][1]['stack_words'] > 0
assert b['program']['raw_stacks'] is False and a['program']['raw_stacks'] is True
f, g = a['failure'], b['failure']
assert f['tid'] == g['tid'] and [t['frames'] for t in f['threads']] == [t['frames'] for t in g['threads']]
END
"$ETCH" sketch ./leakpp in.etch 2>&1 | sed 's/qzjxvkw-what/***/' >in.txt
"$ETCH" sketch ./leakpp out.etch >out.txt 2>&1
same in.txt out.txt

# ---- A second time nothing more goes, and an existing file is never touched
expect 0 "$ETCH" redact out.etch again.etch
has err "0 arguments, 0 values, 0 messages, 0 registers, 0 stack words"
cp out.etch before
expect 1 "$ETCH" redact in.etch out.etch
same before out.etch
ln -s target link
expect 1 "$ETCH" redact in.etch link
[ ! -e target ] || fail "a link was followed"

# ---- Rules
expect 0 "$ETCH" redact --rule 'deny argument' --rule 'deny stack' --rule 'mask message' in.etch rules.etch
has <("$ETCH" info rules.etch) "leakpp (denied)"
has <("$ETCH" info --secrets rules.etch) "stacks       0 masked"
expect 1 "$ETCH" redact --rule 'mask everything' in.etch never.etch
has err "no such kind: 'everything'"
[ ! -e never.etch ] || fail "a copy was made by a wrong rule"
mkdir -p home/qzjxvkw
cp leakpp home/qzjxvkw/
(cd home/qzjxvkw && LEAK=x LEAK_TOKEN=x "$ETCH" record --source none -o ../../home.etch -- ./leakpp >/dev/null 2>&1 || true)
"$ETCH" info --secrets=plain home.etch | grep -qE '^user names   [12] in paths: .*qzjxvkw' || # etch itself may lie in a home
  fail "the user's name is not found"
expect 0 "$ETCH" redact --paths home.etch paths.etch
clean paths.etch
has <("$ETCH" info --secrets paths.etch) "user names   0 in paths"

# ---- Cut and damaged: the copy is neither whole nor unsafe
size=$(stat -c %s in.etch)
for part in 3 10 50 90 99; do
  head -c $((size * part / 100)) in.etch >cut.etch
  rm -f less.etch
  expect 0 "$ETCH" redact cut.etch less.etch
  has err "is not whole, and neither is the copy"
  clean less.etch
  expect 1 "$ETCH" info --verify less.etch
done
python3 - <<'END'
data = bytearray(open('in.etch', 'rb').read())
data[len(data) // 2] ^= 0x55
open('damaged.etch', 'wb').write(data)
END
expect 0 "$ETCH" redact damaged.etch less2.etch
has err "1 damaged records are left out"
clean less2.etch
expect 1 "$ETCH" info --verify less2.etch
has <("$ETCH" info less2.etch 2>/dev/null) "damaged (1)"
expect 1 "$ETCH" redact leakpp never.etch
[ ! -e never.etch ] || fail "a copy was made of a file that is no bundle"
expect 1 "$ETCH" redact missing.etch never.etch
done_checking
