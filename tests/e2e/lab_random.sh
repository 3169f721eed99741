#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Random programs in the lab end as they may: tests/tools/lab_programs.py makes them and knows every outcome that is possible. None
# ends otherwise, hangs without being able to, or runs into a limit. LAB_PROGRAMS=1000 and LAB_SCHEDULES=100 are the long form.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
programs=${LAB_PROGRAMS:-60} schedules=${LAB_SCHEDULES:-12} first=${LAB_FIRST:-1}
hung=0
for ((at = first; at < first + programs; at += 50)); do
  left=$((first + programs - at))
  python3 "$ETCH_SOURCE/tests/tools/lab_programs.py" $at $((left < 50 ? left : 50)) >programs.c
  "$ETCH" cc -O$((at % 3)) -g -pthread programs.c -o programs
  while read -r number hang; do
    status=0
    "$ETCH" explore --all --no-cause --schedules "$schedules" --timeout 60 -o found.etch ./programs "$number" >out 2>err || status=$?
    rm -f found.etch
    ! grep -q "did not end" out || fail "program $number: a schedule did not end"
    case $status in
      1) [ ! -s err ] || { cat err >&2; fail "program $number"; } ;;
      0)
        [ -n "$hang" ] && grep -q '^no thread can run' out && grep -q 'in 1 ways' out || { cat out >&2; fail "program $number ends as it must not"; }
        hung=$((hung + 1))
        ;;
      *) cat err >&2; fail "program $number: status $status" ;;
    esac
    checks=$((checks + 1))
  done < <(./programs)
done
echo "$hung programs hung in the lab, as they may"
done_checking
