#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real captures through our loaders and out again as perf.data: perf, which did not see the original, must find what the
# project that recorded it found.
set -eu
data=${ETCH_PTDATA:-$ETCH_SOURCE/../shared/ptdata}
perf=$(command -v perf || true)
[ -n "$perf" ] || { echo "skipped: no perf"; exit 77; }
reexport=$ETCH_BUILD/tests/reexport
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# A recording without Intel PT, as a file and through a pipe: an error that says so. (Needs no real capture.)
if perf record -q -e task-clock -o plain.data -- true >/dev/null 2>&1; then
  ! "$reexport" plain.data - 2>message || { echo "a recording without PT was loaded"; exit 1; }
  grep -q 'recorded without Intel PT (try: perf record' message
  perf record -q -e task-clock -o - -- true 2>/dev/null | "$reexport" - - 2>message && exit 1
  grep -q 'recorded without Intel PT' message
else
  echo "perf record does not work here: only real captures are tried"
fi
[ -d "$data" ] || { echo "skipped: no real captures here (ETCH_PTDATA)"; exit 77; }

for n in loopy control-flow; do
  "$reexport" "$data"/hase-$n/*.perf $n.data
  perf script -i $n.data --itrace=b -F ip,addr 2>/dev/null | awk '{print $1 "\t" $3}' >$n.branches
  tr -d '\r' <"$(echo "$data"/hase-$n/*.trace)" | diff - $n.branches
  echo "hase-$n: $(wc -l <$n.branches) branches, as expected"
  # As vpt records: a stream per thread, code in the recording itself, which perf then finds beside the export.
  "$reexport" --as-vpt "$data"/hase-$n/*.perf thread.data
  perf script -i thread.data --itrace=b -F ip,addr 2>/dev/null | awk '{print $1 "\t" $3}' | diff $n.branches -
  [ -n "$(ls thread.data.code)" ]
  cat $n.data | "$reexport" - piped.data # a file that comes through a pipe is spooled
  cmp $n.data piped.data
  # And our own decoder on the original, on the export, and through a pipe.
  for from in "$data"/hase-$n/*.perf $n.data; do
    "$ETCH" decode "$from" --as branch --fields ip,addr | awk '{print $1 "\t" $2}' | diff $n.branches -
  done
  "$ETCH" decode - --as branch --fields ip,addr <$n.data | awk '{print $1 "\t" $2}' | diff $n.branches -
  "$ETCH" decode "$(echo "$data"/hase-$n/*.perf)" --as perf-data -o by-etch.data
  cmp $n.data by-etch.data
done

# perf goes on behind unmapped code at the next TIP and beyond a trace's last packet: what is expected must be what it finds
# up to there.
"$reexport" "$data/lldb-single" single.data
perf script -i single.data --itrace=i1i -F ip 2>/dev/null | awk '{print $1}' | diff "$data/lldb-single/expected.ips" -
"$reexport" "$data/lldb-multi-core" cores.data
for c in 45:3497497 51:3497496; do
  zcat "$data/lldb-multi-core/expected.${c%:*}.ips.gz" >want
  perf script -i cores.data --tid "${c#*:}" --itrace=i1i -F ip 2>/dev/null | awk '{print $1}' >got
  head -n "$(wc -l <want)" got | diff -q want -
  echo "lldb-multi-core, thread ${c#*:}: $(wc -l <want) instructions, and $(($(wc -l <got) - $(wc -l <want))) that perf guesses"
done
