#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh BUILD: the main job end to end. A small model of a well-known bug of pbzip2's (main clears the queue's mutex while a
# consumer is about to unlock it; some runs crash, most do not) is built, run until the cause is clear, and sketched. Then the same
# in C++: a reader tests a shared_ptr and uses it, and a reload resets it in between.
set -eu
export PATH="$(cd "$1" && pwd):$PATH"
corpus=$(cd "$(dirname "$0")/corpus" && pwd)
out=$(cd "$1" && pwd)/demo
rm -rf "$out"
mkdir -p "$out"
cd "$out"

say() { printf '\n$ %s\n' "$*"; }
explain() { printf '\n== %s\n' "$*"; }

# diagnose NAME PROGRAM: the page and the data beside the picture
diagnose() {
  say "etch diagnose --html $1.html -- ./$1"
  etch diagnose --fresh --time 90 --html "$1.html" --json "$1.json" -- "./$1" || {
    echo "(no run failed; on a very busy machine that happens: again, please)"
    exit 1
  }
}

# sentence FILE: what happened, and how sure that is
sentence() { sed -n 's/^ *"sentence": "\(.*\)",$/\1/p' "$1" | fold -s -w 100; }

explain "What this machine can record"
say etch doctor
etch doctor

explain "A C program with two threads that crashes now and then. etch cc builds it with a recorder"
say "etch cc --record -g -pthread pbzip2.c -o pbzip2"
etch cc --record -g -pthread "$corpus/pbzip2/bug.c" -o pbzip2
explain "etch runs it until the difference between failing and passing runs is clear. This takes some seconds"
diagnose pbzip2

explain "The same for C++: a shared_ptr is tested, and reset by another thread before it is used"
say "etch c++ --record -std=c++17 -g -pthread settings.cpp -o settings"
etch c++ --record -std=c++17 -g -pthread "$corpus/shared-ptr-reset/bug.cpp" -o settings
diagnose settings

explain "One run as it was, without a diagnosis: its last lines"
say "etch record -o run.etch ./pbzip2; etch decode run.etch --as line --last 30"
etch record -o run.etch ./pbzip2 || echo "(exit status $?)"
etch decode run.etch --as line --last 30 | tail -n 12

for name in pbzip2 settings; do
  explain "What etch found in $name"
  sentence "$name.json"
done
explain "The pictures to click through, in a browser"
for name in pbzip2 settings; do
  echo "file://$out/$name.html"
done
