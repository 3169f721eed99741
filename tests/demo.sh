#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh BUILD: the main job end to end. A small model of a well-known bug of pbzip2's (main clears the queue's mutex while a
# consumer is about to unlock it; some runs crash, most do not) is built, run until the cause is clear, and sketched. Then the same
# in C++: a reader tests a shared_ptr and uses it, and a reload resets it in between.
set -eu
export PATH="$(cd "$1" && pwd):$PATH"
corpus=$(cd "$(dirname "$0")/corpus" && pwd)
bug=$corpus/pbzip2/bug.c
out=$(cd "$1" && pwd)/demo
rm -rf "$out"
mkdir -p "$out"
cd "$out"

say() { printf '\n$ %s\n' "$*"; }

say etch doctor
etch doctor

say "etch cc --record -g -pthread pbzip2.c -o pbzip2        # clang, with what etch needs and its recorder built in"
etch cc --record -g -pthread "$bug" -o pbzip2

say "etch diagnose --html sketch.html -- ./pbzip2"
etch diagnose --fresh --time 90 --html sketch.html --json sketch.json -- ./pbzip2 || {
  echo "(no run failed; on a very busy machine that happens: again, please)"
  exit 1
}

say "etch c++ --record -std=c++17 -g -pthread settings.cpp -o settings; etch diagnose -- ./settings     # the same for C++"
etch c++ --record -std=c++17 -g -pthread "$corpus/shared-ptr-reset/bug.cpp" -o settings
etch diagnose --fresh --time 90 --json settings.json -- ./settings || {
  echo "(no run failed; on a very busy machine that happens: again, please)"
  exit 1
}

say "etch record -o run.etch ./pbzip2; etch decode run.etch --as line --last 30   # one run, as it was"
etch record -o run.etch ./pbzip2 || echo "(exit status $?)"
etch decode run.etch --as line --last 30 | tail -n 12
echo
echo "The sketch with the evidence of each line: $out/sketch.html"
