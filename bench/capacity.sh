#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# capacity.sh BUILD: how much Intel PT writes, what draining it costs, and for how long a ring remembers. The kernel is simulated (no
# machine of ours has Intel PT); the rates are those of real captures (ETCH_PTDATA) and of programs under vpt.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
data=${ETCH_PTDATA:-$here/../../shared/ptdata}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

echo "### volume: bytes of trace for each thousand instructions (vpt, no timing packets)"
echo "| program | instructions | bytes | bytes / 1000 |"
echo "|---|---|---|---|"
seq 30000 | sed 's/\(.*\)\(.\)/\2\1/' >lines
"$build/etch" record --source vpt -o sort.etch sort lines >/dev/null 2>&1
for program in switches recursion callbacks; do
  "$build/etch" record --source vpt -o $program.etch "$build/tests/programs/$program" >/dev/null 2>&1 || true
done
for bundle in sort switches recursion callbacks; do
  instructions=$("$build/etch" decode $bundle.etch --fields ip 2>/dev/null | wc -l)
  bytes=$("$build/etch" info --json $bundle.etch | python3 -c 'import json, sys; print(json.load(sys.stdin)["flow_bytes"])')
  echo "| $bundle | $instructions | $bytes | $((bytes * 1000 / instructions)) |"
done

if [ -d "$data" ]; then
  echo
  echo "### volume of real CPUs: bytes for each million ticks of the TSC, between two synchronisation points; MB/s at 2.4 GHz"
  echo "| capture | bytes | least | mean | most | MB/s mean |"
  echo "|---|---|---|---|---|---|"
  python3 - "$data" <<'PY'
import os, sys
PSB, PSBEND, TSC = bytes.fromhex("0282" * 8), b"\x02\x23", b"\x19"
for name in "quipper/perf.data.intel_pt-4.14", "lldb-multi-core/cores/45.intelpt_trace":
    path = os.path.join(sys.argv[1], name)
    if not os.path.exists(path):
        continue
    data = open(path, "rb").read()
    points, at = [], data.find(PSB)
    while at >= 0:
        head = data[at + 16:data.find(PSBEND, at)]
        tsc = head.find(TSC)
        if tsc >= 0:
            points.append((at, int.from_bytes(head[tsc + 1:tsc + 8], "little")))
        at = data.find(PSB, at + 16)
    spans = [(b - a, t - s) for (a, s), (b, t) in zip(points, points[1:]) if t > s]
    rates = [1e6 * n / ticks for n, ticks in spans]
    mean = 1e6 * sum(n for n, _ in spans) / sum(t for _, t in spans)
    print(f"| {name.split('/')[0]} | {sum(n for n, _ in spans)} | {min(rates):.0f} | {mean:.0f} | {max(rates):.0f} | {mean * 2400 / 1e6:.0f} |")
PY
fi

echo
echo "### draining: a simulated kernel fills a ring of 8 MiB for each CPU, the collector's own path empties it into a bundle"
echo "| MB/s each | CPUs | MB/s through | lost % | CPUs used | CPU s / GB | file / trace |"
echo "|---|---|---|---|---|---|---|"
for rate in 100 250 500 1000; do
  "$build/bench/bench_capacity" sort.etch $rate 1 2 8 out.etch
done
"$build/bench/bench_capacity" sort.etch 100 4 2 8 out.etch
rm -f out.etch
"$build/etch" decode sort.etch --as perf-data -o trace 2>/dev/null # the same bytes, unpacked
TIMEFORMAT='%U %S'
packed=$({ time for _ in 1 2 3 4; do zstd -q -1 --single-thread -f trace -o trace.zst; done; } 2>&1)
copied=$({ time for _ in 1 2 3 4; do cp trace copy; done; } 2>&1)
python3 -c "
size = 4 * $(stat -c %s trace) / 1e9
for name, times in ('zstd -1', '$packed'), ('cp', '$copied'):
    print(f'peer, on the same bytes: {name} {sum(map(float, times.split())) / size:.2f} CPU s / GB')"

echo
echo "### memory: for how long a ring remembers a busy core"
echo "| ring of each CPU | 100 MB/s | 250 MB/s | 500 MB/s | memory of 32 CPUs |"
echo "|---|---|---|---|---|"
for mib in 1 4 16 64 256; do
  echo "| $mib MiB | $((mib * 1048576 / 100000)) ms | $((mib * 1048576 / 250000)) ms | $((mib * 1048576 / 500000)) ms | $((mib * 32)) MiB |"
done
