#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# decode.sh BUILD: how fast Intel PT is decoded, on one capture of vpt's, against perf script and a plain loop over
# libipt's instruction decoder. Seconds are wall clock, the best of three (perf and libipt: of one; they take long).
set -eu
build=$1
etch=$build/etch bench=$build/bench/bench_decode
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# seconds COMMAND...: wall, user+system and peak memory, into $wall, $cpu, $kib
seconds() {
  /usr/bin/env bash -c 'TIMEFORMAT="%R %U %S"; time "$@"' - "$@" >/dev/null 2>"$dir/time"
  read -r wall user system < <(tail -n 1 "$dir/time")
  cpu=$(awk "BEGIN { print $user + $system }")
}

# best N COMMAND...: the fastest of N runs
best() {
  local n=$1 w= c=
  shift
  for _ in $(seq "$n"); do
    seconds "$@"
    if [ -z "$w" ] || awk "BEGIN { exit !($wall < $w) }"; then w=$wall c=$cpu; fi
  done
  wall=$w cpu=$c
}

row() { printf '%-52s %8.2f s  %8.2f s CPU  %s\n' "$1" "$wall" "$cpu" "${2:-}"; }
ratio() { awk "BEGIN { printf \"%.1fx\", $1 / $2 }"; }

"$etch" record -o "$dir/busy.etch" "$build/tests/programs/busy" 32 mixed 2 >/dev/null 2>"$dir/said"
read -r instructions _ < <("$bench" "$dir/busy.etch" etch 2)
echo "capture: $instructions instructions, $(sed -n 's/.* \([0-9.]* [KM]iB\) of control flow.*/\1 of PT/p' "$dir/said")"
[ "$instructions" -ge 200000000 ] || { echo "too small to measure" >&2; exit 1; }

best 3 "$bench" "$dir/busy.etch" etch 1
one=$wall one_cpu=$cpu
row "etch, one thread, to steps"
best 3 "$bench" "$dir/busy.etch" etch 2
row "etch, two threads, to steps" "$(ratio "$one" "$wall") of one thread (aim 1.7x; needs two idle CPUs)"
best 1 "$bench" "$dir/busy.etch" ipt
row "libipt's instruction decoder, plain loop" "etch on one thread: $(ratio "$cpu" "$one_cpu") faster by CPU time (aim 2x)"

best 3 "$etch" decode "$dir/busy.etch" --as branch --fields ip,addr --jobs 1
branch_one=$wall
row "etch decode --as branch, one thread"
best 3 "$etch" decode "$dir/busy.etch" --as branch --fields ip,addr
branch=$wall
row "etch decode --as branch" "$(ratio "$branch_one" "$wall") of one thread"
if command -v perf >/dev/null; then
  "$etch" decode "$dir/busy.etch" --as perf-data -o "$dir/busy.data"
  best 1 perf script --itrace=b -F ip,addr -i "$dir/busy.data"
  row "perf script --itrace=b -F ip,addr" "etch: $(ratio "$wall" "$branch") faster (aim 20x)"
fi

# Memory follows the window: four times the trace, the same peak.
for scale in 1 4; do
  "$etch" record -o "$dir/$scale.etch" "$build/tests/programs/busy" $((scale * 4)) >/dev/null 2>&1
  peak=$(python3 - "$etch" "$dir/$scale.etch" <<'P' 2>/dev/null || true
import resource, subprocess, sys
subprocess.run([sys.argv[1], "decode", sys.argv[2], "--as", "branch", "--fields", "ip,addr"], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
P
)
  echo "peak memory at ${scale}x the trace ($(stat -c %s "$dir/$scale.etch") bytes): ${peak:-?} KiB"
done
