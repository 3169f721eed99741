#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lab_proofs.sh BUILD [NAME...]: looks for a failing schedule of each threaded bug of the corpus with $SEEDS (1) seeds, and puts each
# cause that etch calls proven to the test again: $RUNS (20) runs enforced and as many turned round, under seeds of their own, in the
# lab, and with NATIVE=1 natively as well. "other": etch confirm does not come to the word proven, with more experiments. One line a bug and seed: the word, schedules and experiments, seconds until the answer,
# failures enforced and turned round. $CORPUS names another folder of bugs, $LEVEL the optimisation (-O0).
set -u
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
corpus=${CORPUS:-$source/tests/corpus}
shift
[ $# -gt 0 ] || set -- $(cd "$corpus" && grep -lE 'pthread_create|std::thread|std::async' */bug.c* | xargs -n1 dirname)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache

counts() { # FILE: "enforced turned" of etch confirm's output
  sed -n 's/^enforced *\([0-9]* of [0-9]*\) runs.*/\1/p; s/^forbidden *\([0-9]* of [0-9]*\) runs.*/\1/p' "$1" | tr ' ' '_' | paste -sd' '
}
printf '%-20s %4s %-10s %9s %7s %-20s %s\n' program seed answer runs seconds again natively
for name in "$@"; do
  file=bug.c compiler=cc
  [ -f "$corpus/$name/bug.cpp" ] && file=bug.cpp compiler='c++ -std=c++17'
  "$build/etch" $compiler "${LEVEL:--O0}" -g -w "$corpus/$name/$file" -o "$dir/$name" -pthread || exit 1
  for seed in $(seq "${SEEDS:-1}"); do
    start=$(date +%s%N)
    timeout 120 "$build/etch" explore --seed $((seed * 1000)) --time 30 -o "$dir/schedule" "$dir/$name" >"$dir/out" 2>&1
    took=$((($(date +%s%N) - start) / 100000000))
    runs=$(sed -n 's/.*necessary, \([0-9]*\) runs.*/\1/p' "$dir/out")
    answer=none again=- native=-
    grep -q '^  necessary' "$dir/out" && answer=necessary
    if grep -q '^  proven' "$dir/out"; then
      answer=proven
      timeout 300 "$build/etch" confirm --runs "${RUNS:-20}" --seed $((seed * 7919 + 100000)) "$dir/schedule" >"$dir/again" 2>&1
      again=$(counts "$dir/again")
      # etch confirm finds the cause anew: only a cause that is proven again has to hold.
      grep -q '^  proven' "$dir/again" || again="other:$again"
      if [ -n "${NATIVE:-}" ]; then
        timeout 600 "$build/etch" confirm --native --runs "${RUNS:-20}" "$dir/schedule" >"$dir/native" 2>&1
        native=$(counts "$dir/native")
        [ -n "$native" ] || native=$(tail -n 1 "$dir/native" | cut -c1-60)
      fi
    fi
    printf '%-20s %4s %-10s %9s %5s.%s %-20s %s\n' "$name" "$seed" "$answer" "${runs:--}" $((took / 10)) $((took % 10)) "${again:-failed}" "$native"
    rm -f "$dir/schedule"
  done
done
