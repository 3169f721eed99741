#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# unwind_seeds.sh SOURCE-FOLDER CC CORPUS: a small file with unwind tables, and a stack.
set -eu
source=$1 cc=$2 corpus=$3
"$cc" -O2 -nostdlib -shared -fPIC -fasynchronous-unwind-tables -Wl,-z,noseparate-code -Wl,-e,entry -o "$corpus/elf" \
  "$source/tests/symbols/tiny.c"
python3 "$source/tests/tools/reader_seeds.py" unwind "$corpus/elf" "$corpus"
rm "$corpus/elf"
