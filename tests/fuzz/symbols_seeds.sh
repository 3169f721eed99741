#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# symbols_seeds.sh SOURCE-FOLDER CC CORPUS: small ELF files with DWARF of both versions, with and without inlining.
set -eu
source=$1 cc=$2 corpus=$3
for version in 4 5; do
  "$cc" -O2 -g -gdwarf-$version -nostdlib -shared -fPIC -fno-stack-protector -Wl,-z,noseparate-code \
    -Wl,--hash-style=gnu -o "$corpus/dwarf$version" "$source/tests/symbols/tiny.c"
done
"$cc" -O2 -s -nostdlib -shared -fPIC -o "$corpus/stripped" "$source/tests/symbols/tiny.c"
