#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# measure.sh COMPILER RUNS [NAME...]: how often each program of the corpus fails, and its fixed twin. COMPILER takes C and C++,
# as clang does; LEVEL is the optimisation (-O0).
# A run that takes longer than a second hangs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
compiler=$1 runs=$2
shift 2
[ $# -gt 0 ] || set -- $(cd "$here" && ls -d */ | tr -d /)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '%-20s %8s %8s\n' program bug fixed
for name in "$@"; do
  printf '%-20s' "$name"
  for define in -DBUG -DFIXED; do
    source=$here/$name/bug.c
    [ -f "$source" ] || source="-std=c++17 $here/$name/bug.cpp -lstdc++"
    $compiler "${LEVEL:--O0}" $define $source -o "$dir/p" -pthread -lm || exit 1
    n=0
    for _ in $(seq "$runs"); do
      timeout -s KILL 1 "$dir/p" >/dev/null 2>&1 || n=$((n + 1))
    done 2>/dev/null
    printf ' %7s%%' $((n * 100 / runs))
  done
  echo
done
