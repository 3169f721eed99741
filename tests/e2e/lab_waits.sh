#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every kind of waiting, used properly, in C and C++, at -O0 and -O2: no schedule fails or hangs, and the same schedules have
# the same points. LAB_SCHEDULES=1000 is the long form.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
programs=$ETCH_SOURCE/tests/programs/lab
for level in -O0 -O2; do
  "$ETCH" cc $level -g -pthread "$programs/primitives.c" -o c$level
  "$ETCH" c++ -std=c++17 $level -g -pthread "$programs/primitives.cpp" -o cpp$level
  "$ETCH" cc -D_GNU_SOURCE $level -g -pthread "$programs/rest.c" -o rest$level
  for program in c$level cpp$level rest$level; do
    for name in $(./$program); do
      expect 1 "$ETCH" explore --schedules "${LAB_SCHEDULES:-10}" --timeout 60 ./$program "$name"
      has out "no failure in ${LAB_SCHEDULES:-10} schedules"
      ! grep -q "did not end" out || fail "$program $name: a schedule did not end"
      cp out first
      case $name in shared_*) continue ;; esac # another process takes part
      expect 1 "$ETCH" explore --schedules "${LAB_SCHEDULES:-10}" --timeout 60 ./$program "$name"
      same first out
    done
  done
done
done_checking
