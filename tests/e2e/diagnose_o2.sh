#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Optimised programs: the statement that failed is named right although it was inlined or moved, values that are there are
# shown, and of those that are not it is said why.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=120
programs=$ETCH_SOURCE/tests/programs/diagnose
corpus=$ETCH_SOURCE/tests/corpus
cd "$work"
line() { grep -n "//@$2\b" "$1" | cut -d: -f1; } # FILE LABEL

"$ETCH" cc $recorder -g -O2 "$programs/reader.c" "$programs/shelf.c" -o reader
printf 'one\ndrop\nthree\n' >lines
expect 0 "$ETCH" diagnose --no-lab --input lines --json s.json ./reader
has out "SIGSEGV in main()  reader.c:$(line "$programs/reader.c" use)"
has s.json "shelf.top.title == 0 at main reader.c:$(line "$programs/reader.c" use)"

"$ETCH" cc $recorder -g -O2 "$programs/inlined.c" -o inlined
expect 0 "$ETCH" diagnose --no-lab --json s.json ./inlined
has out "SIGSEGV in pages_of()  inlined.c:$(line "$programs/inlined.c" use)"
has out "the value of book at line $(line "$programs/inlined.c" use) is not known: the compiler has it"
has out "//@use  X"
[ $flow != vpt ] || has out "goes on to line" # at the fault, soft knows the last call alone

# Which of its statements meets the race is chance; the function is not.
for bug in pbzip2:consumer use-after-free:logger; do
  function=${bug#*:} bug=${bug%:*}
  "$ETCH" cc $recorder -O2 -g -w "$corpus/$bug/bug.c" -o $bug -pthread
  expect 0 "$ETCH" diagnose --no-lab --time 150 --timeout 30 ./$bug
  has out " in $function()  bug.c:"
  has out "passing runs"
done
done_checking
