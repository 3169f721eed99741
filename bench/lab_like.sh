#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lab_like.sh BUILD: in how many schedules the lab makes a failure of the corpus again that was recorded outside, with the orders that
# the recording proves and without them. "-": not within the limit, or not recorded. ETCH_BENCH_SCHEDULES is the limit (200),
# ETCH_BENCH_RUNS how many runs are recorded until one fails (25). ETCH_BENCH_PROGRAMS: names of programs; all that fail by default.
set -eu
build=$(cd "$1" && pwd)
corpus=$(cd "$(dirname "$0")/../tests/corpus" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
limit=${ETCH_BENCH_SCHEDULES:-200} runs=${ETCH_BENCH_RUNS:-25}
cd "$work"

compile() { # FOLDER
  if [ -e "$1/bug.c" ]; then
    "$build/etch" cc -O0 -g -pthread "$1/bug.c" -o prog -lm
  else
    "$build/etch" c++ -std=c++17 -O2 -g -pthread "$1/bug.cpp" -o prog
  fi
}

record() {
  local i
  for ((i = 0; i < runs; i++)); do
    timeout -k 1 20 "$build/etch" record --source none --wall 2 -o run.etch ./prog >/dev/null 2>&1 </dev/null || return 0
  done
  return 1
}

# The schedule that failed.
first() { # COMMAND...
  timeout -k 1 120 "$build/etch" "$@" >out 2>/dev/null </dev/null || true
  rm -f found.etch
  sed -n 's/.* in schedule \([0-9]*\) (.*/\1/p' out | head -n 1
}

printf '%-22s %8s %8s %8s\n' program enforced like explore
for folder in "$corpus"/*/; do
  folder=${folder%/} name=$(basename "$folder")
  [ -z "${ETCH_BENCH_PROGRAMS:-}" ] || grep -qw -- "$name" <<<"$ETCH_BENCH_PROGRAMS" || continue
  grep -qsE 'pthread_create|std::thread|std::async' "$folder"/bug.c "$folder"/bug.cpp || continue
  compile "$folder" 2>/dev/null && record || continue
  like=$(first replay --like run.etch --no-cause --schedules "$limit" --timeout 10 -o found.etch)
  enforced=$(sed -n 's/.*proven, \([0-9]*\) enforced/\1/p' out)
  plain=$(first explore --no-cause --schedules "$limit" --timeout 10 -o found.etch ./prog)
  printf '%-22s %8s %8s %8s\n' "$name" "${enforced:--}" "${like:--}" "${plain:--}"
done
