#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bitcode_seeds.sh ETCH FOLDER: objects of etch cc's, and their bitcode alone.
set -eu
etch=$1 out=$2
printf 'int g; int main(void) { return g; }\n' >"$out/seed.c"
"$etch" cc -c -w "$out/seed.c" -o "$out/object"
"$etch" cc -w "$out/seed.c" -o "$out/program"
objcopy --dump-section .etchbc="$out/bitcode" "$out/object"
rm "$out/seed.c"
