#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run in the lab is a bundle like any other: etch sketch compares failing and passing runs of it.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
corpus=$ETCH_SOURCE/tests/corpus

# sketches BUG LEVEL PATTERN [OPTION...]: the first cause that the sketch names
sketches() {
  local source=$corpus/$1/bug.c
  rm -rf runs
  if [ -e "$source" ]; then
    "$ETCH" cc "$2" -g -pthread "${@:4}" "$source" -o prog
  else
    "$ETCH" c++ -std=c++17 "$2" -g -pthread "${@:4}" "${source}pp" -o prog
  fi
  expect 0 "$ETCH" explore --bundles runs -o found.etch ./prog
  grep -qE '^recorded +[1-9][0-9]* failing and [1-9][0-9]* passing runs' out || { cat out >&2; fail "$1: no runs"; }
  expect 0 env COLUMNS=200 "$ETCH" sketch ./prog runs/*.etch
  grep -qE "^ CAUSE +A +$3" out || { cat out >&2; fail "$1: the first cause is not $3"; }
  has out "source lab"
  has out "Nothing was lost"
  checks=$((checks + 2))
}
sketches pbzip2 -O0 'order +main bug.c:39 before consumer bug.c:(15|18|22) \(WR of fifo->mut\)'
has out "W 0"
! grep -q 'unordered' out || fail "the lab's order is total"
sketches deadlock-abba -O2 'lock_order +the lock taken at (back bug.c:29|forth bug.c:12)'
sketches use-after-free -O2 'order +main bug.c:35 before logger bug.c:18'
sketches shared-ptr-reset -O0 'atomicity +config::Store::drop bug.cpp:32 between config::Store::timeout bug.cpp:49 and'

# The lines and functions are the program's own, whose lab build ran.
"$ETCH" sketch ./prog runs/*.etch --json - >sketch.json
grep -q '"file": *"[^"]*bug.cpp"' sketch.json || fail "no line of the program"
! grep -q 'collector/lab' sketch.json || fail "the lab's own code is in the sketch"
expect 0 "$ETCH" info runs/failing-1.etch
has out "lab"
checks=$((checks + 2))

# Another program is not taken for the one that ran.
echo 'int main(void) { return 0; }' >other.c
"$ETCH" cc -g other.c -o other
expect 1 "$ETCH" sketch ./other runs/*.etch
has err "is of this build of ./other"
done_checking
