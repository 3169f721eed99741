#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clocks.sh BUILD: width of the skew ranges on this machine and the time it took. Goals: bounds below 250 cycles, statistics
# below 10 cycles at 99.999 %, two seconds at most.
set -eu
for i in 1 2 3; do
  "$1/etch" calibrate --fresh --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
for c in d["cpus"]:
    b, s = c["bounds"], c["statistics"]
    print("CPU %d: bounds %s (by %s, %d rounds), statistics %s, %.2f s in all" % (c["cpu"],
        "%+d..%+d = %d cycles" % (b["lo"], b["hi"], b["hi"] - b["lo"]) if b else "unknown", c["best"], c["rounds"],
        "%+.2f..%+.2f = %.2f cycles" % (s["range"]["lo"], s["range"]["hi"], s["range"]["hi"] - s["range"]["lo"]) if s else "unknown",
        d["duration_ns"] / 1e9))'
done
