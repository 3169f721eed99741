#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The ways in which a diagnosis ends before its time, and goes on: Ctrl-C at several moments and twice, --time, --runs,
# kill -9, --jobs, and what is kept in the store. Which runs fail is known, by $ETCH_RUN.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=120
cd "$work"
cp "$ETCH_SOURCE"/tests/programs/diagnose/*.[ch] .
for name in caught steady stubborn; do
  "$ETCH" cc $recorder -g -O0 $name.c -o $name -pthread
done
runs() { python3 -c 'import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute("select " + sys.argv[2]).fetchone()[0])' \
  "$(echo .etch/"$1"-*/runs.db)" "$2"; } # PROGRAM SQL
is() { # WANT GOT
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "'$2', not '$1'"
}
# start ARG...: a diagnosis in the background, pid in $diagnosis; SIGINT is not ignored in it, as it would be by a plain &
start() {
  python3 -c 'import os,signal,sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])' \
    "$ETCH" diagnose --no-lab "$@" >out 2>err </dev/null &
  diagnosis=$!
}
ended() { # STATUS
  local got=0
  wait $diagnosis || got=$?
  checks=$((checks + 1))
  [ "$got" -eq "$1" ] || { cat out err >&2; fail "ended with $got, not $1"; }
}
# until_runs PROGRAM N: waits until that many runs are in the store
until_runs() {
  for _ in $(seq 1200); do
    [ -e "$(echo .etch/"$1"-*/runs.db)" ] && [ "$(runs "$1" 'count(*) from runs' 2>/dev/null || echo 0)" -ge "$2" ] && return 0
    kill -0 $diagnosis 2>/dev/null || { cat out err >&2; fail "it ended before it had $2 runs"; }
    sleep 0.1
  done
  fail "no $2 runs of $1 in two minutes"
}

# Ctrl-C while the first run runs, and never ends: no failure, and nothing is left behind.
start --timeout 100 ./stubborn
for _ in $(seq 600); do
  running stubborn && break
  sleep 0.1
done
kill -INT $diagnosis
ended 1
has out "interrupted; no failure in 0 runs of ./stubborn"
! running stubborn || fail "the program was left behind"
is "" "$(ls .etch/stubborn-*/*.etch 2>/dev/null)"

# Ctrl-C after the first failing runs: the best sketch so far. (All runs fail: it would go on for long.)
start --runs 100000 ./steady
until_runs steady 3
kill -INT $diagnosis
ended 0
has out "exit status 4 in judge()"
has err "kept in .etch/steady-"
before=$(runs steady 'count(*) from runs')

# A second call goes on from there, and kill -9 loses no run and counts none by half.
start --runs 100000 ./steady
until_runs steady $((before + 2))
kill -9 $diagnosis
ended 137
counted=$(runs steady 'count(*) from runs')
for _ in $(seq 100); do # its recorder is told to end, and does
  flock -n -x .etch/steady-*/lock true && ! running steady && break
  sleep 0.1
done
folder=$(echo .etch/steady-*)
touch "$folder/999999.etch" "$folder/999999.etch.output" # as a run that was not finished leaves them
expect 0 "$ETCH" diagnose --no-lab --runs 2 ./steady
has err "$((counted + 2)) runs, $((counted + 2)) failed"
is "" "$(ls .etch/steady-*/999999* 2>/dev/null)"
is "$(runs steady "count(*) from runs where bundle <> ''")" "$(ls .etch/steady-*/*.etch | wc -l)"
is 0 "$(runs steady "count(*) from (select id from runs group by id having count(*) > 1)")"

# Twice: the end, at once, by that signal.
start --runs 100000 --timeout 100 --store twice ./stubborn
for _ in $(seq 600); do
  running stubborn && break
  sleep 0.1
done
kill -STOP $diagnosis
kill -INT $diagnosis
kill -CONT $diagnosis
kill -INT $diagnosis 2>/dev/null || true
got=0
wait $diagnosis || got=$?
checks=$((checks + 1))
[ $got -eq 130 ] || [ $got -eq 1 ] || fail "two Ctrl-C ended it with $got"
for _ in $(seq 100); do
  running stubborn || break
  sleep 0.1
done
! running stubborn || fail "the program outlived etch"

# Time is a limit, and so are runs; runs at the same time do not mix.
expect 1 "$ETCH" diagnose --no-lab --time 1 --timeout 100 --store timed ./stubborn
has out "no failure in 0 runs"
expect 0 "$ETCH" diagnose --no-lab --runs 8 --jobs 4 --json s.json ./caught
is 8 "$(runs caught 'count(*) from runs')"
is 4 "$(runs caught "count(*) from runs where verdict = 'fail' and id % 2 = 1")"
is 4 "$(runs caught "count(*) from runs where verdict = 'pass' and id % 2 = 0")"

# A program that hardly ever fails: few bundles are kept, all runs are counted, and reading the store stays quick.
expect 1 "$ETCH" diagnose --no-lab --runs 12 --jobs 2 ./steady 1000000
has out "no failure in 12 runs"
rare=$(dirname "$(ls -t .etch/steady-*/runs.db | head -n 1)")
[ "$(ls "$rare"/*.etch | wc -l)" -le 4 ] || fail "all bundles were kept"
python3 - "$rare/runs.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executemany("insert into runs values (?, '', 'pass', 0, 0.1)", ((i,) for i in range(100, 10100)))
db.execute("update numbers set last = 1000000")
db.commit()
PY
expect 0 "$ETCH" diagnose --no-lab --runs 3 ./steady 1000000
has err "10015 runs, 3 failed"
has out "exit status 4"
done_checking
