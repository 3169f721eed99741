#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Code that is missing: what etch decode lists without one module is what ran, in its order, and most of what ran in the others. With
# vpt's recordings of C and C++ programs, and with real captures where they are.
. "$(dirname "$0")/lib.sh"
without=$ETCH_BUILD/tests/decode_without
programs=$ETCH_BUILD/tests/programs
data=${ETCH_PTDATA:-$ETCH_SOURCE/../shared/ptdata}

# listed FILE MODULE PERCENT: nothing wrong, and at least so much
listed() {
  expect 0 "$without" "$1" "$2"
  awk -v want="$3" '{ exit !($4 >= want) }' "$work/out" || fail "$1 without $2: $(cat "$work/out"), wanted $3 %"
  echo "$1 without $2: $(cat "$work/out")"
}

if [ -d "$data" ]; then
  for module in a.out libfoo libbar; do
    listed "$data/lldb-multi-file/multi-file-no-ld.json" $module 40
  done
  listed "$data/lldb-multi-core" m.out 0
fi

need_vpt
cd "$work"
for n in callbacks loops switches threads exceptions jumps forks signals; do
  "$ETCH" record --source vpt -o $n.etch -- "$programs/$n" >/dev/null 2>"$work/err" || [ $? -ne 125 ] || fail "$(cat "$work/err")"
done
# Of these a good part was in doubt as long as a TIP behind unread TNT bits was not used: 70, 84 and 81 % were listed,
# and of the exceptions 29, 34 and 3 %.
listed callbacks.etch libc.so 90
listed loops.etch libc.so 95
listed loops.etch ld-linux 95
listed exceptions.etch libc.so 60
listed exceptions.etch libstdc++ 70
listed exceptions.etch ld-linux 50
listed exceptions.etch libgcc 0
# Of these nothing may be wrong; how much there is depends on how much they call.
for n in switches threads jumps forks signals; do
  for module in ld-linux libc.so "/$n"; do
    listed $n.etch "$module" 0
  done
done
echo "$checks decodes without a module, none with a wrong instruction"
