#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Inputs: an INI parser over 14 files of which two make it crash; a program that always fails; a script that starts another
# program; the software recorder below a script.
. "$(dirname "$0")/lib.sh"
has_watchpoints || skip "no hardware watchpoints, so soft has no values"
export LC_ALL=C COLUMNS=120
cd "$work"
cp "$ETCH_SOURCE/tests/programs/diagnose/ini.c" .
mkdir cases
number=0
while IFS= read -r text; do
  number=$((number + 1))
  printf "$text" >"cases/$(printf %02d $number).ini"
done <<'CASES'
a=1\n
[one]\na=1\n
; only a comment\n
\n\n
[one]\na=1\n[two]\nb=2\n
[one]\n[two]\n
a=1\nb=2\nc=3\n
[net]\nport=80\nhost=1\n
[net\nport=80\nhost=1\n
[a]\nx\ny=1\n
[long name of a section]\nz=9\n
[x]\n; c\nk=5\n
[q]\nk=\n
[one]\na=1\n[two\nb=2\n
CASES
"$ETCH" cc --record -g -O0 ini.c -o ini

# The sentence has the wrong value, who wrote it, and the statement that only failing inputs reach.
expect 0 "$ETCH" diagnose --json ini.json --html ini.html --inputs 'cases/*.ini' -- ./ini {}
has out "2 of 14 inputs fail: cases/09.ini, cases/14.ini"
has out "12 of 14 inputs pass"
has out "cases/09.ini fails with nothing in line 1, where cases/08.ini passes with ']'"
python3 - <<'PY' || fail "the sketch of the INI parser"
import json
s = json.load(open("ini.json"))
lines = open("ini.c").read().split("\n")
line = lambda text: next(i + 1 for i, l in enumerate(lines) if text in l)
sentence = s["sentence"]
assert f"current == 0 at line {line('current->keys++')}" in sentence, sentence
assert f"The value is from T1, at line {line('current = open_section(line)')}." in sentence, sentence
assert f"Only failing runs execute line {line('return NULL')}." in sentence, sentence
assert s["input"] in ("cases/09.ini", "cases/14.ini"), s["input"]
assert s["command"] == ["./ini", s["input"]], s["command"]
failing = [t for t in s["steps"] if t["failing"]]
assert len(failing) == 1, "the failing mark is on one row"
read = next(v for v in failing[0]["values"] if v["deciding"])
writer = s["steps"][read["from"]]
assert writer["place"]["line"] == line("current = open_section(line)"), writer
assert any(v["access"] == "write" and v["value"] == "0x0" for v in writer["values"]), writer
assert failing[0]["passing"]["ran"] > 0 and failing[0]["passing"]["values"][0]["least"] != "0x0", failing[0]["passing"]
for i, p in enumerate(s["predictors"][:3]):
    assert any(i in t["predictors"] for t in s["steps"]), ("a badge without its row", p["text"])
PY
has ini.html "cases/"
expect 0 python3 "$ETCH_SOURCE/tests/sketch/schema.py" "$ETCH_SOURCE/docs/sketch.schema.json" ini.json

# gdb prints the steps and their values, and stops at the failing statement.
if command -v gdb >/dev/null; then
  expect 0 "$ETCH" diagnose --inputs 'cases/0[89].ini' --gdb steps.gdb -- ./ini {}
  expect 0 timeout 60 gdb -nx -batch -x steps.gdb -ex run -ex 'info line' --args ./ini cases/09.ini
  has out "(fails here)"
  has out "etch:     current is 0x0"
  has out "Line $(grep -n 'current->keys++' ini.c | cut -d: -f1) of"
  grep -q 'etch: step .* current = open_section(line);' out || fail "gdb does not print the step that wrote the value"
fi

# By standard input, where there is no {}.
expect 0 "$ETCH" diagnose --inputs 'cases/0[89].ini' -- ./ini
has out "1 of 2 inputs fail: cases/09.ini"
has out "current == 0"

# No input fails; every input fails; no such input.
expect 1 "$ETCH" diagnose --inputs 'cases/0[123].ini' -- ./ini {}
has out "no failure in 6 runs"
has out "0 of 3 inputs fail"
has out "more runs"
expect 0 "$ETCH" diagnose --inputs 'cases/09.ini' -- ./ini {}
has out "1 of 1 inputs fail"
expect 1 "$ETCH" diagnose --inputs 'cases/none*' -- ./ini {}
has err "no file is named 'cases/none*'"

# It always fails: told after 3 runs, with what to do.
expect 0 "$ETCH" diagnose --no-lab ./ini cases/09.ini
has err "all of the first 3 runs failed"
has err "etch diagnose: 3 runs, 3 failed"
has out "To compare: an input with which it passes"

# A script starts the program: soft records it. A script that starts another one is told after the first run.
cat >script <<'S'
#!/bin/sh
here=$PWD
cd /
[ $((ETCH_RUN % 2)) -eq 0 ] || exec "$here/ini" "$here/cases/09.ini"
"$here/ini" "$here/cases/08.ini"
S
chmod +x script
expect 0 "$ETCH" diagnose --source soft --program ./ini ./script
has out "current == 0"
[ -z "$(ls -d .etch/*/*.rings 2>/dev/null)" ] || fail "rings are left behind"
expect 1 "$ETCH" diagnose --source soft --program ./ini true
has err "./ini did not run"
done_checking
