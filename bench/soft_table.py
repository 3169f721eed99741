# SPDX-License-Identifier: MIT
# soft_table.py WORK PROGRAMS COLUMNS: the table of soft.sh, from the times that it left in WORK.
import math, os, statistics, sys

work, programs, columns = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
shown = [c for c in columns if c != "plain"]


def lines(name):
    path = f"{work}/{name}"
    return open(path).read().split("\n")[:-1] if os.path.exists(path) else []


def median(name):
    times = [sum(map(float, line.split())) for line in lines(name)]
    return statistics.median(times) if times else None


def cell(ratio, form="%9.3f"):
    return form % ratio if ratio else "%9s" % "-"


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else None


print("%-11s %8s " % ("", "plain") + " ".join("%9s" % c for c in shown) + "     build     size  KB per million instructions")
ratios, extra = {c: [] for c in shown}, {"build": [], "size": [], "volume": []}
for p in programs:
    plain, row = median(f"{p}.plain.times"), []
    if not plain:
        continue # not run
    for c in shown:
        took = median(f"{p}.{c}.times")
        row.append(took / plain if took else None)
        ratios[c] += [row[-1]] if took else []
    builds, sizes = (median(f"{p}.plain.build"), median(f"{p}.full.build")), list(map(int, lines(f"{p}.sizes")))
    build = builds[1] / builds[0] if all(builds) else None
    size = sizes[1] / sizes[0] if len(sizes) == 2 and sizes[0] else None
    bytes_, instructions = lines(f"{p}.bytes"), lines(f"{p}.instructions")
    volume = int(bytes_[0]) * 1e3 / int(instructions[0]) if bytes_ and instructions else None
    for name, value in (("build", build), ("size", size), ("volume", volume)):
        extra[name] += [value] if value else []
    print("%-11s %6.2f s " % (p, plain) + " ".join(map(cell, row)) + " %s %s  %s" % (cell(build, "%9.2f"), cell(size, "%8.2f"), cell(volume, "%.1f")))
print("%-11s %8s " % ("geo. mean", "") + " ".join(cell(mean(ratios[c])) for c in shown) + " %s %s" % (cell(mean(extra["build"]), "%9.2f"), cell(mean(extra["size"]), "%8.2f")))
print("%-11s %8s " % ("worst", "") + " ".join(cell(max(ratios[c], default=None)) for c in shown))


def verdict(name, value, limit):
    if value:
        print("%s: %.3f (target %.2f%s)" % (name, value, limit, "" if value <= limit else ", MISSED"))


def of(column, how):
    return how(ratios[column]) if ratios.get(column) else None


verdict("all recorded, mean", of("full", mean), 1.12)
verdict("all recorded, worst", of("full", max), 1.30)
verdict("with the budget, worst", of("budget", max), 1.03)
verdict("a slice, median", of("slice", statistics.median), 1.03)
verdict("compiled in but off, mean", of("off", mean), 1.02)
verdict("KB per million instructions, worst", max(extra["volume"], default=None), 60)
