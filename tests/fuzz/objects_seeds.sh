#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# objects_seeds.sh SOURCE-FOLDER CC CORPUS: small ELF files as the readers of the collector and the slicer know them: a
# build-id, a global with parts, static functions, DWARF.
set -eu
source=$1 cc=$2 corpus=$3
bash "$source/tests/fuzz/symbols_seeds.sh" "$source" "$cc" "$corpus"
printf '%s\n' 'struct node { int value; struct node *next; } table[4];' 'static int count;' \
  'static __attribute__((noinline)) int step(int x) { return count += x; }' \
  'int entry(int x) { table[1].next = &table[step(x) & 3]; return step(count); }' |
  "$cc" -x c -O1 -g -nostdlib -shared -fPIC -Wl,--build-id=sha1 -Wl,-z,noseparate-code -Wl,--hash-style=gnu -o "$corpus/table" -
cp "$source"/tests/fuzz/found/lines-* "$corpus" # what was found once stays mended
