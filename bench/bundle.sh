#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bundle.sh BUILD: 1 GiB of control flow through the bundle and back, beside zstd(1) on the same bytes in the same run.
set -eu
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mib=${ETCH_BENCH_MIB:-1024}

# Bytes that compress as control flow does: this program's own code, each copy shifted by a byte-wise key.
python3 - "$build/etch" "$dir/data" "$mib" <<'PY'
import sys
seed = open(sys.argv[1], "rb").read()
left = int(sys.argv[3]) << 20
key = 0
with open(sys.argv[2], "wb") as out:
    while left > 0:
        table = bytes((b + key) & 255 for b in range(256))
        piece = seed.translate(table)[:left]
        out.write(piece)
        left -= len(piece)
        key += 1
PY
seconds() { # COMMAND...: wall seconds
  local start
  start=$(date +%s.%N)
  "$@"
  python3 -c "import sys; print('%.3f' % ($(date +%s.%N) - $start))"
}
median() { sort -n | sed -n "$((($1 + 1) / 2))p"; }

rounds=3
for ((i = 0; i < rounds; i++)); do # interleaved, so that a noisy neighbour meets all of them
  seconds zstd -1 -q -f "$dir/data" -o "$dir/data.zst" >>"$dir/zstd"
  "$build/bench/bench_bundle" "$dir/data" write "$dir/data.etch" >>"$dir/write"
  seconds zstd -d -q -f "$dir/data.zst" -o "$dir/back" >>"$dir/unzstd"
  "$build/bench/bench_bundle" "$dir/data" read "$dir/data.etch" >>"$dir/read"
done
zstd=$(median $rounds <"$dir/zstd")
unzstd=$(median $rounds <"$dir/unzstd")
write=$(cut -d' ' -f1 "$dir/write" | median $rounds)
read=$(cut -d' ' -f1 "$dir/read" | median $rounds)
python3 - <<PY
import os
mib, gib = $mib, $mib / 1024
raw = os.path.getsize("$dir/data")
rows = [
    ("zstd -1", $zstd, os.path.getsize("$dir/data.zst"), 0),
    ("bundle write", $write, os.path.getsize("$dir/data.etch"), max(int(l.split()[1]) for l in open("$dir/write"))),
    ("zstd -d", $unzstd, os.path.getsize("$dir/data.zst"), 0),
    ("bundle read", $read, os.path.getsize("$dir/data.etch"), max(int(l.split()[1]) for l in open("$dir/read"))),
]
print("%d MiB of chunks, median of $rounds" % mib)
print("%-14s %9s %9s %9s %12s" % ("", "seconds", "MiB/s", "ratio", "peak MiB"))
for name, s, size, peak in rows:
    print("%-14s %9.2f %9.0f %9.2f %12s" % (name, s, mib / s, raw / size, "%.1f" % (peak / 1024) if peak else "-"))
print("write / zstd -1: %.2f of its throughput (wanted: at least 0.80);  read / zstd -d: %.2f;  peak wanted: below 64 MiB" %
      ($zstd / $write, $unzstd / $read))
PY
