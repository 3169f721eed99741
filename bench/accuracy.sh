#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# accuracy.sh BUILD [NAME...]: each bug of the corpus, built with etch cc at $LEVEL (-O0), diagnosed from scratch $SEEDS (1) times with
# each of $SOURCES ("vpt soft none"), and the sketch held against the ideal one. One line a bug: relevance, ordering, accuracy (per
# cent); whether the top predictor is the cause; failing runs after which it stood, failing and passing runs in the sketch; seconds;
# how many times as long as by itself a tracked run took; the top predictor. $CORPUS names another folder of bugs; $PLOT names an SVG file for the picture of it.
# Published over 11 bugs: relevance 92, ordering 100, accuracy 96; 2 to 5 failing runs; 23 s to 5 min 34 s; tracked runs 1.04 times as long.
set -u
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
corpus=${CORPUS:-$source/tests/corpus}
shift
[ $# -gt 0 ] || set -- $(cd "$corpus" && ls -d */ | tr -d /)
for name in "$@"; do
  [ -f "$corpus/$name/ideal" ] || { echo "accuracy.sh: the corpus has no bug '$name'" >&2; exit 2; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

by_itself() { # PROGRAM: seconds of a run that passes, the mean of up to 5
  python3 - "$1" "${TIMEOUT:-5}" <<'PY'
import subprocess, sys, time
times = []
for _ in range(40):
    start = time.monotonic()
    try:
        passed = subprocess.run([sys.argv[1]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=float(sys.argv[2])).returncode == 0
    except subprocess.TimeoutExpired:
        passed = False
    if passed:
        times.append(time.monotonic() - start)
    if len(times) == 5:
        break
print(sum(times) / len(times) if times else 0)
PY
}
tracked() { # STORE: seconds of a tracked run that passed, the mean
  python3 - "$1" <<'PY'
import glob, sqlite3, sys
rows = [r for db in glob.glob(sys.argv[1] + "/*/runs.db")
        for r in sqlite3.connect(db).execute("select seconds from runs where sigma > 0 and verdict = 'pass'")]
print(sum(r[0] for r in rows) / len(rows) if rows else 0)
PY
}

for flow in ${SOURCES:-vpt soft none}; do
  printf '%-18s %4s %4s %4s %-5s %4s %4s %4s %6s %6s\n' "source $flow" A_R A_O A cause need fail pass time slower
  : >"$dir/all"
  for seed in $(seq "${SEEDS:-1}"); do
    for name in "$@"; do
      bug=$corpus/$name file=bug.c compiler=cc
      [ -f "$bug/bug.cpp" ] && file=bug.cpp compiler='c++ -std=c++17'
      "$build/etch" $compiler $([ "$flow" = soft ] && echo --record) "${LEVEL:--O0}" -g -w "$bug/$file" -o "$dir/$name" -pthread || exit 1
      # The failure that the ideal is of, where the program can fail in several places.
      failing=$(sed -n 's/^failing: //p' "$bug/ideal")
      line=$(grep -n "//@$failing\b" "$bug/$file" | cut -d: -f1)
      store=$dir/store-$flow-$seed-$name
      start=$(date +%s%N)
      if ! "$build/etch" diagnose --source "$flow" --store "$store" --timeout "${TIMEOUT:-5}" --time "${TIME:-90}" \
        ${line:+--bug "$file:$line"} --json "$dir/sketch.json" \
        "$dir/$name" >"$dir/out" 2>"$dir/err"; then
        printf '%-18s no sketch: %s\n' "$name" "$(cat "$dir/out" "$dir/err" | tail -n 1)"
        continue
      fi
      took=$(($(date +%s%N) - start))
      need=$(sed -n 's/.*was clear after \([0-9]*\) failure.*/\1/p' "$dir/err")
      slower=$(python3 -c "import sys; a, b = float(sys.argv[1]), float(sys.argv[2]); print('%.1f' % (b / a) if a else '-')" \
        "$(by_itself "$dir/$name")" "$(tracked "$store")")
      python3 "$source/bench/accuracy.py" "$bug/ideal" "$bug/$file" "$dir/sketch.json" >"$dir/line" || exit 1
      IFS=$'\t' read -r a_r a_o a cause failing passing f text rest <"$dir/line"
      printf '%-18s %4s %4s %4s %-5s %4s %4s %4s %4s.%s %6s  F %s %s; %s\n' "$name" "$a_r" "$a_o" "$a" "$cause" "${need:--}" "$failing" \
        "$passing" $((took / 1000000000)) $((took / 100000000 % 10)) "$slower" "$f" "$text" "$rest"
      echo "$a_r $a_o $a $cause ${need:-$failing} $took $name" >>"$dir/all"
      rm -rf "$store"
    done
  done
  awk '{ r += $1; o += $2; a += $3; yes += $4 == "yes"; part += $4 == "part"; n++; f[n] = $5; t += $6 }
    END { for (i = 2; i <= n; i++) for (k = i; k > 1 && f[k - 1] > f[k]; k--) { x = f[k]; f[k] = f[k - 1]; f[k - 1] = x }
      if (n) printf "%-18s %4.0f %4.0f %4.0f  cause: %d yes, %d part, %d no; failing runs needed: median %d, most %d; %.0f s a bug\n", \
        "mean of " n, r / n, o / n, a / n, yes, part, n - yes - part, f[int((n + 1) / 2)], f[n], t / n / 1e9 }' "$dir/all"
  cp "$dir/all" "$dir/all-$flow"
done
if [ -n "${PLOT:-}" ]; then
  python3 "$source/bench/accuracy_plot.py" "$PLOT" $(for flow in ${SOURCES:-vpt soft none}; do echo "$flow=$dir/all-$flow"; done)
fi
