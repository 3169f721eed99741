#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vpt.sh BUILD: what recording with vpt costs: CPU seconds of the program, of it under QEMU, of it under QEMU with the plugin
# and etch emptying the rings beside it, taken in turns; medians. The limit is 4 times QEMU alone, without watches.
set -eu
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rounds=${ETCH_BENCH_ROUNDS:-5}
busy=$build/tests/programs/busy

# spent FILE COMMAND...: wall and CPU seconds, children's included, appended to FILE
spent() {
  local to=$1
  shift
  python3 - "$to" "$@" <<'PY'
import resource, subprocess, sys, time
start = time.monotonic()
done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall = time.monotonic() - start
use = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode:
    sys.exit(done.stderr.decode())
open(sys.argv[1], "a").write("%.4f %.4f\n" % (wall, use.ru_utime + use.ru_stime))
PY
}

measure() { # NAME ROUNDS KIND THREADS
  for ((i = 0; i < rounds; i++)); do # in turns, so that a noisy neighbour meets all of them
    spent "$dir/$1.native" "$busy" "$2" "$3" "$4"
    spent "$dir/$1.qemu" qemu-x86_64 "$busy" "$2" "$3" "$4"
    spent "$dir/$1.vpt" "$build/etch" record -o "$dir/run.etch" -- "$busy" "$2" "$3" "$4"
    spent "$dir/$1.snapshot" "$build/etch" record -o "$dir/snap.etch" --snapshot 1M -- "$busy" "$2" "$3" "$4"
  done
  spent "$dir/$1.watch" "$build/etch" record -o "$dir/watch.etch" --watch rounds -- "$busy" "$2" "$3" "$4"
  stat -c %s "$dir/run.etch" >"$dir/$1.size"
}

measure mixed 150 mixed 1
measure calls 80 calls 1
measure jumps 80 jumps 1
measure loop 200 loop 1
measure mixed-2 100 mixed 2
python3 - "$dir" <<'PY'
import statistics, sys
d = sys.argv[1]
def cpu(name, how, column):
    return statistics.median(float(l.split()[column]) for l in open(f"{d}/{name}.{how}"))
print("%-9s %10s %9s | %s" % ("", "native CPU", "qemu CPU", "times qemu: CPU, wall   all bytes; snapshot; one watch | times native CPU"))
worst = 0
for name in "mixed calls jumps loop mixed-2".split():
    native, qemu = cpu(name, "native", 1), cpu(name, "qemu", 1)
    wall = cpu(name, "qemu", 0)
    row = [(cpu(name, how, 1) / qemu, cpu(name, how, 0) / wall) for how in ("vpt", "snapshot", "watch")]
    worst = max(worst, row[0][0], row[1][0])
    print("%-9s %8.3f s %7.3f s | " % (name, native, qemu) + "; ".join("%4.2f, %4.2f" % r for r in row) +
          " | %.1f" % (cpu(name, "vpt", 1) / native))
print("worst without a watch: %.2f times qemu's CPU time (limit 4)" % worst)
PY
