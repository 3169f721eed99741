#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch info: golden output, JSON, cut at every byte, damage.
. "$(dirname "$0")/lib.sh"
sample=$work/sample.etch
"$ETCH_BUILD/tests/sample/sample_bundle" "$sample"
size=$(stat -c %s "$sample")
cd "$work"

expect 0 "$ETCH" info sample.etch
same "$ETCH_SOURCE/tests/e2e/info.golden" "$work/out"

expect 0 "$ETCH" info --json sample.etch
python3 - "$work/out" <<'PY' 2>"$work/py" || { cat "$work/py" >&2; fail "the JSON is not what it should be"; }
import json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] and not d["cut"] and d["damaged_records"] == 0
assert d["records"] == 20 and d["kinds"]["image"]["records"] == 2
assert d["failure"]["signal"] == 11 and d["failure"]["fault_address"] == "0x10" and d["failure"]["kind"] == "signal"
assert d["outcome"] == dict(d["outcome"], signal=11) and "exit_status" not in d["outcome"]
assert d["losses"] == {"ring_wrapped": 1, "no_ring": 1}
assert d["watches"][0]["name"] == "fifo->mut" and d["watches"][0]["initial_value"] == "0x5581c0"
PY
checks=$((checks + 1))

expect 0 "$ETCH" info --records sample.etch
[ "$(wc -l <"$work/out")" -eq 20 ] || fail "--records prints a line a record"
# A known zero and an unknown value are different things.
has "$work/out" '"value":"0x0"'
[ "$(grep -o '"value":' "$work/out" | wc -l)" -eq 1 ] || fail "an unknown value was printed"

expect 0 "$ETCH" info --verify sample.etch
has "$work/out" "20 whole, 0 damaged"

expect 0 bash -c '"$0" info - <sample.etch' "$ETCH"

# A name that is not UTF-8 is still JSON.
cp sample.etch "$(printf 'odd\377.etch')"
expect 0 "$ETCH" info --json "$(printf 'odd\377.etch')"
python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["file"] == "odd\\xff.etch"' "$work/out" || fail "an odd file name"

# Cut: at every byte of the first kilobyte and at every 17th behind it; the unit test does every byte of the reader.
step=1
for ((n = 0; n < size; n += step)); do
  [ "$n" -lt 200 ] || step=53
  head -c "$n" sample.etch >cut.etch
  got=0
  "$ETCH" info --verify cut.etch >out 2>err || got=$?
  [ "$got" -eq 1 ] || { cat out err >&2; fail "cut at $n: exit status $got, not 1"; }
  grep -q 'records are whole' out || { cat out err >&2; fail "cut at $n: the number of whole records is not said"; }
  checks=$((checks + 1))
done
head -c $((size - 1)) sample.etch >cut.etch
expect 1 "$ETCH" info --verify cut.etch
has "$work/out" "20 records are whole"
expect 0 "$ETCH" info cut.etch # without --verify a cut file is shown as far as it goes
has "$work/out" "file cut (1)"
expect 0 "$ETCH" info --json cut.etch
has "$work/out" '"cut": 1'

# Damage: the record is named, the others are still read.
cp sample.etch bad.etch
printf 'X' | dd of=bad.etch bs=1 seek=60 conv=notrunc status=none
expect 1 "$ETCH" info --verify bad.etch
has "$work/out" "record 0 (host, byte 16"
has "$work/out" "its checksum does not match"
has "$work/out" "19 whole, 1 damaged"
expect 0 "$ETCH" info bad.etch
has "$work/out" "damaged (1)"
expect 0 "$ETCH" info --json bad.etch
has "$work/out" '"complete": false'

# Not ours, not there, from the future.
expect 1 "$ETCH" info /bin/sh
has "$work/err" "etch info: /bin/sh is not an etch file (try: "
expect 1 "$ETCH" info nothing.etch
has "$work/err" "etch info: cannot open nothing.etch: No such file or directory"
cp sample.etch future.etch
printf '\x07' | dd of=future.etch bs=1 seek=8 conv=notrunc status=none
expect 1 "$ETCH" info future.etch
has "$work/err" "has format 7, and this etch reads up to 1"
expect 1 "$ETCH" info .
has "$work/err" "Is a directory"
expect 1 bash -c '"$0" info sample.etch >/dev/full' "$ETCH"
has "$work/err" "No space left"
done_checking
