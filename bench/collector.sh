#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# collector.sh BUILD: what recording costs. Steady state on Debian's pbzip2 and sqlite3, no watch hit, runs interleaved;
# a watchpoint hit beside perf's and gdb's; a synchronisation event.
set -eu
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for p in pbzip2 sqlite3; do
  command -v $p >/dev/null || { echo "no $p here (try: apt-get install $p)"; exit 0; }
done
clang-19 -O1 -g -no-pie "$(dirname "$0")/hits.c" -o "$dir/hits"
clang-19 -O1 -pthread "$(dirname "$0")/sync.c" -o "$dir/sync"
python3 - "$build/etch" "$dir" "${ETCH_BENCH_ROUNDS:-9}" <<'PY'
import os, re, resource, shutil, statistics, subprocess, sys, time
etch, dir, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def timed(command, **more):
    """wall seconds, CPU seconds of everything"""
    a, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, **quiet, **more)
    wall, b = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime

seed = open(etch, "rb").read()
with open(dir + "/data", "wb") as f:
    while f.tell() < 20 << 20:
        f.write(bytes((x + f.tell()) & 255 for x in seed[:1 << 16]) + seed)
sql = """create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 1 union all select i+1 from n where i < 900000) insert into t select i, hex(i*7919), i % 1000 from n;
create index x on t(c); select count(*), sum(length(b)) from t where c < 500; delete from t where a % 3 = 0; select count(*) from t;"""
open(dir + "/sql", "w").write(sql)
programs = [("pbzip2", ["pbzip2", "-k", "-f", "-c", "-p2", dir + "/data"]),
            ("sqlite3", ["sh", "-c", f"exec sqlite3 :memory: < {dir}/sql"])]
base = [etch, "record", "--source", "none", "--clock", "0", "-o", dir + "/run.etch"]
ways = [("without etch", []),
        ("without etch, again", []),  # how far two equal things are apart here
        ("failures only", base + ["--no-sync", "--"]),
        ("+ a watch, not hit", base + ["--no-sync", "--watch", "0x10000:8", "--"]),
        ("+ synchronisation", base + ["--watch", "0x10000:8", "--"])]
# What a recording costs however short the program is: starting etch, arming, the bundle.
start = {}
for w, prefix in ways:
    start[w] = statistics.median(timed(prefix + ["true"])[1] - timed(["true"])[1] for r in range(rounds))
print(f"{rounds} interleaved rounds; medians of the ratios to the plain run of the same round")
print("%-10s %-20s %8s %10s %10s %14s %14s" % ("program", "way", "wall s", "wall", "CPU", "start, CPU ms", "steady, CPU"))
for name, command in programs:
    rows = {w: [] for w, _ in ways}
    for r in range(rounds):
        for w, prefix in ways[r % len(ways):] + ways[:r % len(ways)]:
            rows[w].append(timed(prefix + command))
    plain = rows["without etch"]
    for w, _ in ways:
        wall = statistics.median(x[0] / p[0] for x, p in zip(rows[w], plain))
        cpu = statistics.median(x[1] / p[1] for x, p in zip(rows[w], plain))
        steady = statistics.median((x[1] - start[w]) / p[1] for x, p in zip(rows[w], plain))
        print("%-10s %-20s %8.3f %+9.2f%% %+9.2f%% %14.1f %+13.2f%%" % (
            name, w, statistics.median(x[0] for x in rows[w]), 100 * (wall - 1), 100 * (cpu - 1), 1000 * start[w],
            100 * (steady - 1)))
print("wanted: steady at most +1 %; the second line is how far two equal things are apart here\n")

address = [l.split()[0] for l in subprocess.check_output(["nm", dir + "/hits"], text=True).splitlines() if l.endswith(" watched")][0]
def ns(command, n):
    out = subprocess.run(command + [dir + "/hits", str(n)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = re.findall(r"^\d+\.\d$", out, re.M)
    return float(found[0]) if found else None
rows = {}
for r in range(5):
    rows.setdefault("no watch", []).append(ns([], 20000))
    rows.setdefault("etch record --watch", []).append(ns(base + ["--no-sync", "--watch-budget", "none", "--watch-share", "0", "--watch", "watched:w", "--"], 20000))
    if shutil.which("perf"):
        rows.setdefault("perf record -e mem:", []).append(ns(["perf", "record", "-q", "-c", "1", "-o", dir + "/perf.data", "-e", f"mem:0x{address}:w:u", "--"], 20000))
    if shutil.which("gdb") and r < 2:
        open(dir + "/gdb", "w").write("set pagination off\nwatch watched\nignore 1 1000000\nrun\n")
        rows.setdefault("gdb watch", []).append(ns(["gdb", "-q", "-batch", "-x", dir + "/gdb", "--args"], 500))
print("%-22s %12s   a write of a watched variable, median" % ("", "ns"))
for name, v in rows.items():
    v = [x for x in v if x is not None]
    print("%-22s %12s" % (name, "%.0f" % statistics.median(v) if v else "failed"))

with_, without = [], []
for r in range(5):
    for out, prefix in ((without, base + ["--no-sync", "--"]), (with_, base + ["--"])):
        text = subprocess.run(prefix + [dir + "/sync", "300000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        out.append([float(x) for x in text.split()])
print("\n%-22s %12s %12s %12s" % ("", "call, ns", "recorded", "per event"))
for i, name in enumerate(("mutex lock, unlock", "semaphore post, wait", "spin lock, unlock")):
    a, b = (statistics.median(x[i] for x in v) / 2 for v in (without, with_))
    print("%-22s %12.1f %12.1f %12.1f" % (name, a, b, b - a))
print("wanted: at most 60 ns per event")
PY
