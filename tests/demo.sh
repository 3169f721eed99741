#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh BUILD: the main job end to end, as far as it exists: a program with a bug that shows only in some runs is built,
# recorded until it crashes, and looked at.
set -eu
etch=$(cd "$1" && pwd)/etch
corpus=$(cd "$(dirname "$0")/corpus" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export PATH="$(dirname "$etch"):$PATH"

step() { printf '\n$ %s\n' "$*"; }

step etch doctor
etch doctor

step "etch cc -O1 -pthread pbzip2.c -o pbzip2      # clang, with what etch needs built in"
etch cc -O1 -pthread -I "$corpus" "$corpus/pbzip2/bug.c" -o pbzip2

step "etch record -o run.etch ./pbzip2             # again until it crashes"
for ((i = 1; i <= 200; i++)); do
  status=0
  etch record -o run.etch ./pbzip2 >out 2>err || status=$?
  [ "$status" -ge 128 ] && break
done
cat err
echo "(run $i, exit status $status)"
[ "$status" -ge 128 ] || { echo "it did not crash in $i runs; on a busy machine that happens"; exit 0; }

step "etch info run.etch"
etch info run.etch | head -n 12

step "etch decode run.etch --as line --last 40     # what each thread did last"
etch decode run.etch --as line --last 40

step "etch slice ./pbzip2 --failure run.etch       # which statements can have caused it"
etch slice ./pbzip2 --failure run.etch
