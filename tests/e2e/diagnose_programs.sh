#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What programs do that are not made for etch: handlers of their own for their faults, worker processes, scripts around
# them, standard input, much output, variables of other files, two bugs at once, failing every time, hanging and not ending
# by SIGTERM. Which runs fail is known, by $ETCH_RUN: nothing here depends on chance.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=120
programs=$ETCH_SOURCE/tests/programs/diagnose
cd "$work"
line() { grep -n "//@$2\b" "$programs/$1.c" | cut -d: -f1; } # FILE LABEL
no() { ! grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "'$2' in $1"; }; }
field() { python3 -c 'import json,sys; print(eval("json.load(open(\"s.json\"))" + sys.argv[1]))' "$1"; }
is() { # WANT GOT
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "'$2', not '$1'"
}
for name in caught child bugs steady stubborn; do
  "$ETCH" cc $recorder -g -O0 "$programs/$name.c" -o "$name" -pthread
done
"$ETCH" cc $recorder -g -O2 "$programs/caught.c" -o caught2

# What only a recorder sees that runs the program itself: faults that a handler gets, child processes, what a script runs.
if [ $flow = vpt ]; then
  # A fault that the program's own handler gets is where it failed, however the handler ends the program.
  expect 0 "$ETCH" diagnose --no-lab --json s.json ./caught
  has out "SIGSEGV in sum()  caught.c:$(line caught fault)"
  has out "caught by a handler; then exit status 3"
  is "value" "$(field '["predictors"][0]["kind"]')"
  has s.json "== 0 at sum caught.c:$(line caught fault)"
  expect 0 "$ETCH" diagnose --no-lab --runs 4 ./caught2
  has out "SIGSEGV in"
  has out "caught.c:$(line caught fault)"
  expect 0 "$ETCH" diagnose --no-lab --runs 4 ./caught abort
  has out "SIGSEGV in sum()  caught.c:$(line caught fault)"
  has out "caught by a handler; then signal 6"
  # One that a handler has repaired is not.
  expect 0 "$ETCH" diagnose --no-lab --runs 4 ./caught repairs some
  has out "SIGSEGV in sum()  caught.c:$(line caught fault)"

  # A worker's crash, of which the program's own process only has the status.
  expect 0 "$ETCH" diagnose --no-lab --json s.json ./child
  has out "SIGSEGV in worker()  child.c:$(line child crash)"
  has out "in a child process"
  has s.json "work == 0 at worker child.c:$(line child crash)"

  # A script that runs the program: by its status, or by the crash alone.
  cat >check.sh <<'S'
#!/bin/sh
echo "a test"
./caught abort || exit 1
S
  cat >careless.sh <<'S'
#!/bin/sh
./child &
./caught abort
true
S
  chmod +x check.sh careless.sh
  expect 1 "$ETCH" diagnose --no-lab ./check.sh
  has err "--program PROG"
  for script in ./check.sh ./careless.sh; do
    expect 0 "$ETCH" diagnose --no-lab --runs 6 --program ./caught --json s.json "$script"
    has out "SIGSEGV in sum()  caught.c:$(line caught fault)"
    is 3 "$(field '["failing_runs"]')"
    is 3 "$(field '["passing_runs"]')"
  done
  expect 0 "$ETCH" diagnose --no-lab --runs 4 --program ./caught -- make -s -f /dev/stdin --eval 'all: ; ./caught abort'
  has out "SIGSEGV in sum()"
else
  echo '#!/bin/sh' >check.sh
  chmod +x check.sh
  "$ETCH_CC" -O0 -g "$programs/caught.c" -o plain
  expect 1 "$ETCH" diagnose --no-lab --program ./plain ./check.sh
  has err "--program needs vpt or pt, or a program built with etch cc --record"
fi

# Standard input, much output, and a variable of another file by its name.
"$ETCH" cc $recorder -g -O0 "$programs/reader.c" "$programs/shelf.c" -o reader
printf 'one\ndrop\nthree\n' >lines
expect 0 "$ETCH" diagnose --no-lab --input lines --json s.json ./reader
has out "SIGSEGV in main()  reader.c:$(line reader use)"
has s.json "shelf.top.title == 0 at main reader.c:$(line reader use)"
expect 0 "$ETCH" diagnose --no-lab --runs 3 ./reader
has out "exit status 2 in main()"
has out "no comparison yet"
expect 1 "$ETCH" diagnose --no-lab --input no-such-file ./reader
has err "no-such-file"
[ -z "$(ls .etch/*/*.output 2>/dev/null)" ] || fail "output was left behind"
mkdir bin
cp reader bin/
PATH="$work/bin:$PATH" expect 0 "$ETCH" diagnose --no-lab --runs 2 --input lines reader
has out "reader.c"

# Two bugs, one of them by two ways: never mixed, all named.
expect 0 "$ETCH" diagnose --no-lab --runs 12 --json s.json ./bugs
has out "SIGSEGV in read_first()  bugs.c:$(line bugs first)"
has out "another failure, in"
has out "SIGABRT, check bugs.c:$(line bugs second) < by_day < main (--bug 'check bugs.c:$(line bugs second)' shows it)"
has out "SIGABRT, check bugs.c:$(line bugs second) < by_night < main"
expect 0 "$ETCH" sketch ./bugs .etch/bugs-*/*.etch --bug check --json s.json
has out "SIGABRT in check()  bugs.c:$(line bugs second)"
has s.json "second == 0"
has out "SIGSEGV, read_first bugs.c:$(line bugs first) < main"
expect 1 "$ETCH" sketch ./bugs .etch/bugs-*/*.etch --bug nowhere
has err "no run failed at 'nowhere'"

# It fails every time: that is seen soon, and no cause is made up.
expect 0 "$ETCH" diagnose --no-lab --json s.json ./steady
has out "exit status 4 in"
has err "3 runs, 3 failed"
has err "all of the first 3 runs failed"
no out CAUSE
# With threads, which a recorder delays, one of the first runs that passes may come late.
cat >seldom.c <<'C'
#include "turn.h"
#include <pthread.h>
static int asked;
static void *ask(void *arg) { asked = turn() < 25 || turn() % 2; return arg; }
int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, ask, NULL);
    pthread_join(t, NULL);
    if (asked)
        abort();
    return 0;
}
C
"$ETCH" cc $recorder -g -O0 -pthread -I"$ETCH_SOURCE/tests/programs/diagnose" seldom.c -o seldom
expect 0 "$ETCH" diagnose --no-lab ./seldom
has out CAUSE
is "[]" "$(field '["predictors"]')"

# A hang that does not end by SIGTERM.
expect 0 "$ETCH" diagnose --no-lab --runs 4 --timeout 2 ./stubborn
has out "hang in main()  stubborn.c:$(line stubborn hang)"
has out "waits for ever in"
! running stubborn || fail "a hanging run was left behind"
done_checking
