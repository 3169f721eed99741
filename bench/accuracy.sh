#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# accuracy.sh BUILD [NAME...]: each bug of the corpus, built with etch cc at $LEVEL (-O0), diagnosed from scratch $SEEDS (1) times,
# and the sketch held against the ideal one. One line a bug: relevance, ordering, accuracy (per cent), whether the top predictor
# is the cause, failing and passing runs, seconds, the top predictor.
# Published over 11 bugs: relevance 92, ordering 100, accuracy 96; 2 to 5 failing runs; 23 s to 5 min 34 s.
set -u
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
shift
[ $# -gt 0 ] || set -- $(cd "$source/tests/corpus" && ls -d */ | tr -d /)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '%-18s %4s %4s %4s %-5s %4s %5s %6s\n' bug A_R A_O A cause fail pass time
for seed in $(seq "${SEEDS:-1}"); do
  for name in "$@"; do
    bug=$source/tests/corpus/$name
    "$build/etch" cc "${LEVEL:--O0}" -g -w "$bug/bug.c" -o "$dir/$name" -pthread || exit 1
    start=$(date +%s%N)
    if ! "$build/etch" diagnose --store "$dir/store-$seed" --timeout "${TIMEOUT:-5}" --time "${TIME:-90}" --json "$dir/sketch.json" \
      "$dir/$name" >"$dir/out" 2>"$dir/err"; then
      printf '%-18s no sketch: %s\n' "$name" "$(cat "$dir/out" "$dir/err" | tail -n 1)"
      continue
    fi
    took=$(($(date +%s%N) - start))
    python3 "$source/bench/accuracy.py" "$bug/ideal" "$bug/bug.c" "$dir/sketch.json" >"$dir/line" || exit 1
    IFS=$'\t' read -r a_r a_o a cause failing passing f text rest <"$dir/line"
    printf '%-18s %4s %4s %4s %-5s %4s %5s %5s.%s  F %s %s; %s\n' "$name" "$a_r" "$a_o" "$a" "$cause" "$failing" "$passing" \
      $((took / 1000000000)) $((took / 100000000 % 10)) "$f" "$text" "$rest"
    echo "$a_r $a_o $a $cause $failing $took" >>"$dir/all"
  done
done
awk '{ r += $1; o += $2; a += $3; yes += $4 == "yes"; part += $4 == "part"; n++; f[n] = $5; t += $6 }
  END { asort_n = n; for (i = 2; i <= n; i++) for (k = i; k > 1 && f[k - 1] > f[k]; k--) { x = f[k]; f[k] = f[k - 1]; f[k - 1] = x }
    if (n) printf "%-18s %4.0f %4.0f %4.0f  cause: %d yes, %d part, %d no; failing runs: median %d, most %d; %.0f s a bug\n", \
      "mean of " n, r / n, o / n, a / n, yes, part, n - yes - part, f[int((n + 1) / 2)], f[n], t / n / 1e9 }' "$dir/all"
