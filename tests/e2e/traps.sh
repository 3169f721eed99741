#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Why a program ended at a trap instruction: a function that ends without the value that it should return, a trap that the source asks
# for. Where the evidence does not say which, neither does the sketch.
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")/../programs/exceptions" && pwd)/traps.cpp
cd "$work"
"$ETCH" c++ -std=c++17 -g -O0 -w "$source" -o traps
"$ETCH" c++ --record -std=c++17 -g -O0 -w "$source" -o recorded

headline() { # SOURCE PROGRAM CASE
  "$ETCH" record --source "$1" -o run.etch -- "./$2" "$3" >/dev/null 2>&1 || true
  expect 0 "$ETCH" sketch --json sketch.json "./$2" run.etch
  python3 -c "import json; s = json.load(open('sketch.json')); print(s['headline'], '|', s['failure']['cause'])" >headline
}
missing='the function ends without returning a value (the compiler put a trap there) | no_return_value'
for case in plain tried generic shape::method object loop; do
  headline none traps "${case#shape::}"
  has headline "SIGILL in $case(): $missing"
done
headline soft recorded tried
has headline "SIGILL in tried(): $missing"
if "$ETCH" record --source vpt -o vpt.etch -- ./traps >/dev/null 2>&1; then
  headline vpt traps tried
  has headline "SIGILL in tried(): $missing"
fi
for case in asked nothing; do
  headline none traps $case
  has headline "SIGILL in $case(): __builtin_trap() | trap_call"
done
for case in stopped checked; do # by a macro: the line does not say what it is
  headline none traps $case
  has headline "SIGILL in $case(): a trap instruction, put in by the compiler or by __builtin_trap() | trap"
done

# Somebody else's signal is no trap.
printf '#include <csignal>\nint main()\n{\n    raise(SIGILL);\n}\n' >raised.cpp
"$ETCH" c++ -g raised.cpp -o raised
headline none raised none
has headline "SIGILL in main() | unspecified"
done_checking
