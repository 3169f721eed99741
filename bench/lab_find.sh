#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lab_find.sh BUILD: within how many schedules the lab finds a failing one, for each threaded program of the corpus, of the held-out
# set, of the programs with narrow windows, and of those that the strategies were not tuned on (rare), with each strategy; how often the program fails outside the lab. "-": not within the
# limit. ETCH_BENCH_SCHEDULES is the limit (100), ETCH_BENCH_RUNS the number of runs outside (50), ETCH_BENCH_SEED the first seed.
# ETCH_BENCH_SETS: corpus heldout narrow rare. ETCH_BENCH_STRATEGIES: explore queue random pct pos surw; explore is the default mixture.
set -eu
build=$(cd "$1" && pwd)
tests=$(cd "$(dirname "$0")/../tests" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
limit=${ETCH_BENCH_SCHEDULES:-100} runs=${ETCH_BENCH_RUNS:-50} seed=${ETCH_BENCH_SEED:-1}
strategies=${ETCH_BENCH_STRATEGIES:-explore queue random pct pos surw}
cd "$work"

compile() { # FOLDER
  if [ -e "$1/bug.c" ]; then
    "$build/etch" cc -O0 -g -pthread "$1/bug.c" -o prog -lm
  else
    "$build/etch" c++ -std=c++17 -O0 -g -pthread "$1/bug.cpp" -o prog
  fi
}

natively() {
  local n=0 i
  for ((i = 0; i < runs; i++)); do
    timeout -s KILL 2 ./prog >/dev/null 2>&1 </dev/null || n=$((n + 1))
  done 2>/dev/null
  echo "$((n * 100 / runs)) %"
}

# The number of the first failing schedule.
first() { # STRATEGY
  local how=()
  [ "$1" = explore ] || how=(--strategy "$1:$seed")
  "$build/etch" explore --no-cause --schedules "$limit" --timeout 10 "${how[@]}" --seed "$seed" -o found.etch ./prog >out 2>err </dev/null || true
  rm -f found.etch
  sed -n 's/.* in schedule \([0-9]*\) (.*/\1/p' out | head -n 1
}

for set in ${ETCH_BENCH_SETS:-corpus narrow rare}; do
  printf '\n%-22s %8s' "$set" native
  for s in $strategies; do printf ' %8s' "$s"; done
  echo
  : >numbers
  for folder in "$tests/$set"/*/ "$tests/$set"/*/*/; do
    folder=${folder%/}
    source=$(ls "$folder"/bug.c "$folder"/bug.cpp 2>/dev/null | head -n 1)
    [ -n "$source" ] && grep -qE 'pthread_create|std::thread|std::async|thrd_create' "$source" || continue
    compile "$folder" 2>err || { echo "$folder: $(head -n 1 err)"; continue; }
    printf '%-22s %8s' "${folder##*/}" "$(natively)"
    for s in $strategies; do
      n=$(first "$s")
      printf ' %8s' "${n:--}"
      echo "$s ${n:-x}" >>numbers
    done
    echo
  done
  printf '%-22s %8s' found ''
  for s in $strategies; do
    printf ' %8s' "$(awk -v s="$s" '$1 == s {all++; found += $2 != "x"} END {printf "%d/%d", found, all}' numbers)"
  done
  printf '\n%-22s %8s' median ''
  for s in $strategies; do
    printf ' %8s' "$(awk -v s="$s" '$1 == s {print $2 == "x" ? 999999 : $2}' numbers | sort -n |
      awk '{v[NR] = $1} END {m = v[int((NR + 1) / 2)]; print m == 999999 ? "-" : m}')"
  done
  echo
done
