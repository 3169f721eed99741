#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# left.sh BUILD [NAME...]: programs that crash with ETCH_RING alone, against etch record. Every bug of tests/corpus that dies of a
# signal is built with --record -O2 and run, in a PID namespace with a /dev/shm of 64 MB where one can be made, until two runs failed
# and two passed (at most ETCH_BENCH_RUNS, 40). `etch sketch --rings` must have the failing statement and the stack of the runs of
# `etch record`. "cause" is the first cause that holds in at least 90 % of the failing runs and hardly in others (-: none), from the
# rings and from as many runs of etch record. Fails where the statement or the stack differs.
set -eu
build=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
corpus=$here/../tests/corpus
export ETCH="$build/etch"
if [ -z "${ETCH_LEFT_INSIDE:-}" ] && unshare -rpfm --mount-proc true 2>/dev/null; then
  ETCH_LEFT_INSIDE=1 exec unshare -rpfm --mount-proc bash -c 'mount -t tmpfs -o size=64m none /dev/shm && exec bash "$@"' - "$here/left.sh" "$build" "$@"
fi
[ -n "${ETCH_LEFT_INSIDE:-}" ] || echo "no PID and mount namespaces here: run without"
work=$(mktemp -d)
trap 'rm -rf "$work" /dev/shm/left-rings' EXIT
cd "$work"
ulimit -S -c 0
rings=/dev/shm/left-rings
most=${ETCH_BENCH_RUNS:-40}
different=0 seen=0
[ $# -gt 0 ] || set -- $(cd "$corpus" && ls)

cat >first.py <<'P'
# The failing statement, the stack, the statements before it in the failing thread, and the first cause of a sketch.
import json, sys
d = json.load(open(sys.argv[1]))
place = lambda p: "%s:%s" % (p["file"].rsplit("/", 1)[-1], p["line"])
what = sys.argv[2]
if what == "statement":
    print(d["headline"], place(d["failing_place"]))
elif what == "stack":
    print(*[place(f) for s in d["stacks"][:1] for f in s["frames"]])
else:
    best = [p for p in d["predictors"] if p.get("precision", 0) > 0.9 and p.get("recall", 0) > 0.9][:1]
    print(best[0]["text"] if best else "-")
P

# outcome PROGRAM...: 0 if it died of a signal, 1 if it passed, 2 otherwise
outcome() {
  local status=0
  { (timeout 20 "$@") >/dev/null 2>&1; } 2>/dev/null || status=$?
  [ $status -ne 0 ] || return 1
  [ $status -gt 128 ] && [ $status -ne 137 ] || return 2
}

printf '%-22s %-6s %-34s %-9s %s\n' bug runs statement stack cause
for name in "$@"; do
  source=$(ls "$corpus/$name"/bug.c* 2>/dev/null | head -n 1)
  [ -n "$source" ] || continue
  driver=cc
  case $source in *.cpp) driver='c++ -std=c++17' ;; esac
  "$ETCH" $driver --record -O2 -g -w -pthread -DBUG "$source" -o "$name" -lm 2>/dev/null || continue
  rm -rf "$rings" && mkdir "$rings"
  failed=0 passed=0 recorded=''
  for ((i = 0; i < most; i++)); do
    got=0
    ETCH_RING=$rings ETCH_RING_BUDGET=off outcome "./$name" || got=$?
    [ $got -ne 0 ] || failed=$((failed + 1))
    [ $got -ne 1 ] || passed=$((passed + 1))
    [ $got -ne 2 ] || break
    [ $failed -lt 2 ] || [ $passed -lt 2 ] || break
  done
  [ $failed -gt 0 ] || continue
  # The same number of runs with etch record.
  f=0 p=0
  for ((i = 0; i < 2 * most && (f < failed || p < passed); i++)); do
    got=0
    outcome "$ETCH" record --source soft -o "r$i.etch" "./$name" || got=$?
    if [ $got -eq 0 ] && [ $f -lt $failed ]; then f=$((f + 1)) recorded="$recorded r$i.etch"; elif [ $got -eq 1 ] && [ $p -lt $passed ]; then p=$((p + 1)) recorded="$recorded r$i.etch"; else rm -f "r$i.etch"; fi
  done
  [ $f -gt 0 ] || continue
  seen=$((seen + 1))
  "$ETCH" sketch "./$name" --rings "$rings" --json rings.json >/dev/null 2>err || { printf '%-22s no sketch: %s\n' "$name" "$(head -n 1 err)"; different=1; continue; }
  "$ETCH" sketch "./$name" $recorded --json record.json >/dev/null 2>err || { printf '%-22s no sketch of etch record\n' "$name"; continue; }
  say=()
  for what in statement stack cause; do
    a=$(python3 first.py rings.json $what) b=$(python3 first.py record.json $what)
    if [ "$a" = "$b" ]; then say+=(same); else say+=("DIFFERENT: $a | $b"); [ $what = cause ] || different=1; fi
    [ $what != statement ] || [ "$a" != "$b" ] || say[0]=$(python3 first.py rings.json statement | cut -c1-33)
    [ $what != cause ] || [ "$a" != "$b" ] || say[2]="same: $a"
  done
  printf '%-22s %-6s %-34s %-9s %s\n' "$name" "$failed+$passed" "${say[0]}" "${say[1]}" "${say[2]}"
  rm -f r*.etch
done
echo "$seen bugs"
exit $different
