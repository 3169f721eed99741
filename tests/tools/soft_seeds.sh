#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft_seeds.sh ETCH FOLDER: a small recorded program's file and ring, as tests/fuzz/soft.c takes them.
set -eu
etch=$1 to=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/a.c" <<'C'
int main(int argc, char **argv)
{
    int sum = 0;

    for (int i = 0; i < 40 * argc; i++)
        sum += i % 3 ? i : argv[0][0];
    return sum & 1;
}
C
"$etch" cc --record -O1 -g0 -static -nostartfiles -Wl,-e,main -Wl,-s "$dir/a.c" -o "$dir/a" 2>/dev/null ||
  "$etch" cc --record -O1 "$dir/a.c" -o "$dir/a"
"$etch" cc --record -O1 "$dir/a.c" -o "$dir/b"
mkdir "$dir/rings"
ETCH_RING=$dir/rings ETCH_RING_KB=16 "$dir/b" || true
python3 - "$dir" "$to" <<'P'
import glob, sys, os
folder, to = sys.argv[1:]
ring = open(glob.glob(folder + '/rings/*')[0], 'rb')
ring.seek(65536 + 4096)
chunks = ring.read(4 * 4096)
program = open(folder + '/a', 'rb').read()
for n in (len(program), 20000, 4000):
    part = program[:min(n, 65000)]
    open(os.path.join(to, 'seed%d' % n), 'wb').write(len(part).to_bytes(2, 'little') + part + chunks)
P
