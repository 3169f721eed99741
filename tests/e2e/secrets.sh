#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A secret of the program is not in its bundle: of the environment, the arguments, a local array, a register, a part of the stack that
# is free again, another thread's stack, an exception's words, a watched text. The sketch is the same as with all that. C and C++, each
# source. The policy is asked before anything is written, and one that cannot be read stops the recording.
. "$(dirname "$0")/lib.sh"
programs=$(cd "$(dirname "$0")/../programs/secrets" && pwd)
unpacked=$ETCH_BUILD/tests/unpacked
backtraces=$ETCH_BUILD/tests/backtraces
cd "$work"
unset ETCH_POLICY
export HOME=$work LEAK=qzjxvkw LEAK_TOKEN=qzjxvkw-environment
[ ! -e /etc/etch/policy ] || skip "this machine has a policy of its own"
sources=none
! has_vpt || sources="none vpt"

# record SOURCE FILE PROGRAM OPTION... -- ARGUMENT...: the program fails, the recording does not
record() {
  local status=0 from=$1 to=$2 program=$3
  shift 3
  rm -f "$to"
  local options=()
  [ "$from" = vpt ] || options=(--clock 0)
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  "$ETCH" record --source "$from" -o "$to" "${options[@]}" -- "./$program" "$@" >/dev/null 2>"$work/err" || status=$?
  [ $status -ge 128 ] || { cat "$work/err" >&2; fail "$program was not recorded by $from: $status"; }
}

# clean FILE: no piece of the secret is there, unpacked or as it lies
clean() {
  checks=$((checks + 1))
  "$unpacked" "$1" >bytes || fail "$1 cannot be unpacked"
  cat "$1" >>bytes
  ! grep -aob 'qzjxv' bytes >&2 || fail "$1 holds the secret"
  ! grep -aob 'zjxvkw' bytes >&2 || fail "$1 holds a part of the secret"
  ! grep -aob 'qregistr' bytes >&2 || fail "$1 holds the register"
  ! grep -aob "HOME=" bytes >&2 || fail "$1 holds the environment"
}

# picture PROGRAM FILE: as the sketch draws it, without what differs from run to run
picture() {
  "$ETCH" sketch "./$1" "$2" 2>&1 | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/\(.*cycles.*\)//'
}

# same_run SOURCE PROGRAM ARGUMENT...: with the whole stack and without it, the backtraces and the sketch are the same; and so are those
# of a recording that loses its stack later
same_run() {
  local from=$1 program=$2
  shift 2
  record "$from" raw.etch "$program" --keep-stack -- "$@"
  record "$from" run.etch "$program" -- "$@"
  clean run.etch
  cp bytes bytes.run
  rm -f less.etch
  "$ETCH" redact raw.etch less.etch 2>/dev/null
  clean less.etch
  for what in raw run less; do
    "$backtraces" $what.etch >$what.frames || fail "no backtrace of $what.etch"
  done
  same raw.frames less.frames
  same <(grep -v ^thread raw.frames) <(grep -v ^thread run.frames) # the other thread may have come farther
  picture "$program" raw.etch >raw.txt
  picture "$program" run.etch >run.txt
  picture "$program" less.etch >less.txt
  same raw.txt less.txt
  same <(head -n 1 raw.txt) <(head -n 1 run.txt) # two runs are not ordered alike
}

"$ETCH" cc -g -O0 "$programs/leak.c" -o leak-O0 -pthread
"$ETCH" cc -g -O2 -no-pie "$programs/leak.c" -o leak-O2 -pthread
"$ETCH" c++ -std=c++17 -g -O2 "$programs/leak.cpp" -o leakpp -pthread
"$ETCH" cc --record -g -O2 "$programs/leak.c" -o soft -pthread

# ---- The test itself: with --keep-stack the secret is there, and is told
record none raw.etch leak-O0 --keep-stack -- x
"$unpacked" raw.etch >bytes
for what in qzjxvkw-freed qzjxvkw-thread qzjxvkw-local qzjxvkw-environment; do
  grep -qaF "$what" bytes || fail "--keep-stack has no $what: the test proves nothing"
done
expect 0 "$ETCH" info --secrets raw.etch
has out "variables, in raw memory"
! grep -q qzjxv out || fail "an example is not masked"
has <("$ETCH" info --json raw.etch) '"raw_stacks": true'

# ---- Without it, the same sketch
secret=(--password=qzjxvkw-1 --api-key qzjxvkw-2 'http://me:qzjxvkw@h/' 'Authorization: Bearer qzjxvkw')
for from in $sources; do
  same_run "$from" leakpp "${secret[@]}"
  [ "$from" = vpt ] || has run.frames ' wait_for_ever'
  has run.frames 'thrown '
done
same_run none leak-O0 x "${secret[@]}"
has run.txt 'SIGSEGV in crash()'
has run.frames 'failing crash:'
has run.frames ' wait_for_ever:'
"$ETCH" cc -g -O0 -Wl,-z,execstack "$programs/leak.c" -o executable -pthread 2>/dev/null
record none run.etch executable -- x
clean run.etch
same_run none leak-O2 signal
has run.frames ' on_signal:'
has run.frames ' main:'
checks=$((checks + 1))
python3 - "$(nm leak-O2 | sed -n 's/ t leave$//p')" <<'END' || fail "a number that could be an address is there"
import sys
assert (int(sys.argv[1], 16) + 1).to_bytes(8, 'little') not in open('bytes.run', 'rb').read()
END
[ "$sources" = none ] || { record vpt run.etch leak-O2 -- x "${secret[@]}"; clean run.etch; }
same_run soft soft x "${secret[@]}"
expect 0 "$ETCH" info --secrets run.etch
has out "raw stacks   0, 0 bytes, 0 strings"
has out "environment  none"
expect 0 "$ETCH" info run.etch
has out "--password=*** --api-key *** http://me:***@h/ Authorization:***"
has out "stack words, by the recorder, policy built-in"

# ---- A running process: its words come from /proc
cat >sleeper.c <<'END'
#include <unistd.h>
int main(void) { write(1, "up\n", 3); for (;;) pause(); }
END
"$ETCH_CC" sleeper.c -o sleeper
mkfifo up
./sleeper --password=qzjxvkw >up &
pid=$!
read -r _ <up
"$ETCH" record --source none --pid $pid --wall 0.2 --kill --clock 0 -o join.etch >/dev/null 2>"$work/err" || true
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
clean join.etch
has <("$ETCH" info join.etch) "--password=***"

# ---- Values of variables
printf 'mask value name=counter\n' >policy
watching=$sources
has_watchpoints || watching=${sources#none}
for from in $watching; do
  record "$from" text.etch leak-O0 --watch watched --watch counter -- x
  clean text.etch
  record "$from" values.etch leak-O0 --policy policy --watch counter -- x
  "$ETCH" info --json text.etch >with.json
  "$ETCH" info --json values.etch >without.json
  "$ETCH_BUILD/tests/accesses" text.etch >text.values
  "$ETCH_BUILD/tests/accesses" values.etch >less.values
  checks=$((checks + 1))
  python3 - "$from" <<'END' || fail "values by $from"
import json, sys
with_, without = json.load(open('with.json')), json.load(open('without.json'))
assert with_['accesses'] > 0 and without['accesses'] > 0
hidden = without['redactions'][0]
assert hidden['values'] > 0 and hidden['policy'] == 'policy', hidden
assert all('initial_value' not in w for w in without['watches'])
assert any('initial_value' in w for w in with_['watches'] if w['name'] == 'counter')
lines = open('less.values').read().splitlines()
assert lines and all(line.endswith(' unknown') for line in lines), lines
lines = open('text.values').read().splitlines()
assert any(line.split()[-1].isdigit() for line in lines), lines
END
done

# ---- Policies
printf 'deny argument name=mail\nallow argument name=token\n' >policy
record none run.etch leak-O0 --policy policy -- x --mail=qzjxvkw --token=shown
clean run.etch
has <("$ETCH" info run.etch) "leak-O0 x (denied) --token=shown"
ETCH_POLICY=$work/policy record none run.etch leak-O0 -- x --mail=qzjxvkw
clean run.etch
mkdir -p .config/etch
cp policy .config/etch/policy
record none run.etch leak-O0 -- x --mail=qzjxvkw
clean run.etch
has <("$ETCH" info run.etch) "policy $work/.config/etch/policy"

# refused TEXT OPTION...: nothing runs, nothing is written
refusing="$sources soft"
refused() {
  local text=$1
  shift
  for from in $refusing; do
    rm -f never.etch ran
    expect 125 "$ETCH" record --source "$from" -o never.etch "$@" -- touch ran
    has err "$text"
    [ ! -e never.etch ] && [ ! -e ran ] || fail "recorded by $from although the policy was refused"
  done
}
printf 'mask value\nmask everything\n' >.config/etch/policy
refused "line 2: no such kind: 'everything'"
rm .config/etch/policy
refusing=none
refused "cannot read the policy" --policy missing
refused "it is no regular file" --policy .
printf 'mask value\n' >policy
chmod 666 policy
refused "everybody may change it" --policy policy
chmod 600 policy
printf 'mask stack\n' >policy
refused "does not allow stacks" --policy policy --keep-stack
done_checking
