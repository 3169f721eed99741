#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A flight recorder is for the end: whatever kills the program, at whatever moment, the ring is readable, and the last
# statement in it is right. The program writes into a file that outlives it which of its steps was begun last and which
# done; each step's way depends on its number alone, so the ways that are replayed tell which steps they were, and the
# last of them must be one of those two. ETCH_DEATHS: how many (25; the long form is 1000).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/steps.sh"
cd "$work"
{
  cat <<'C'
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
C
  step_source
  cat <<'C'
int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    unsigned long end = argc > 2 ? strtoul(argv[2], NULL, 10) : ~0ul;
    int how = argc > 3 ? atoi(argv[3]) : 0, sum = 0;

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 2;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (unsigned long i = 1; i < end; i++) {
        sum += step(i);
        seen[1] = i;
    }
    if (how == SIGSEGV)
        *(volatile int *)8 = sum; /* @fault */
    if (how == SIGABRT)
        abort(); /* @abort */
    return sum == 77;
}
C
} >count.c
"$ETCH" cc --record -O2 -g count.c -o count

write_last

# SIGKILL comes at any time. The last path may not have been written yet, so the step before the last is right too.
for i in $(seq "${ETCH_DEATHS:-25}"); do
  rm -rf rings seen one.etch
  mkdir rings
  ETCH_RING=$work/rings ETCH_RING_KB=64 ./count seen &
  pid=$!
  until [ -s seen ] && [ "$(od -An -t u8 -j 8 -N 8 seen | tr -d ' ')" -gt 0 ]; do sleep 0.001; done
  [ $((i % 3)) -eq 0 ] || sleep 0.00$((RANDOM % 9 + 1))
  kill -9 $pid
  wait $pid 2>/dev/null || true
  "$ETCH" record --rings rings -o one.etch 2>err || { cat err >&2; fail "death $i: no rings"; }
  "$ETCH" decode one.etch --as line --last 3000 >lines 2>err || { cat err >&2; fail "death $i: no replay"; }
  # shellcheck disable=SC2046
  python3 last.py count.c lines $(od -An -t u8 -N 16 seen) >said 2>&1 || { cat said >&2; fail "death $i"; }
  checks=$((checks + 1))
done

# A fault: the replay goes up to the very instruction that etch saw fail, whose statement is the failing one. An abort: the
# last statement is the call.
for n in 2 9 100 5000 70000; do
  rm -f one.etch
  "$ETCH" record --source soft -o one.etch -- ./count seen $n 11 >out 2>err && fail "it should have died"
  at=$(sed -n 's/.* in thread [0-9]* at 0x\([0-9a-f]*\).*/\1/p' err)
  "$ETCH" decode one.etch --as branch >branches 2>err || { cat err >&2; fail "SIGSEGV at $n: no replay"; }
  tail -n 1 branches | grep -q " $at -> 0" || { tail -n 3 branches >&2; fail "SIGSEGV at $n: not at $at"; }
  last=$("$ETCH" decode one.etch --as insn --fields ip --last 1)
  [ "$last" = "$at" ] || fail "SIGSEGV at $n: the last instruction is $last, not $at"
  line=$(grep -n '@fault' count.c | cut -d: -f1)
  "$ETCH" decode one.etch --as line | grep 'count.c:' | tail -n 2 >lines
  tail -n 1 lines | grep -q "count.c:$line " || { cat lines >&2; fail "SIGSEGV at $n: not at line $line"; }
  rm -f one.etch
  "$ETCH" record --source soft -o one.etch -- ./count seen $n 6 >out 2>err && fail "it should have died"
  "$ETCH" decode one.etch --as line >lines 2>err || { cat err >&2; fail "SIGABRT at $n: no replay"; }
  line=$(grep -n '@abort' count.c | cut -d: -f1)
  grep 'count.c:' lines | tail -n 1 | grep -q "count.c:$line " || { tail -n 3 lines >&2; fail "SIGABRT at $n: not at line $line"; }
  checks=$((checks + 4))
done

# The kernel kills a program whose cgroup is out of memory. Its log says so, and the run is a failing one. Without such a cgroup, or
# without the log, this part is left out.
group='' limit=''
for at in /sys/fs/cgroup/memory/etch-test-$$:memory.limit_in_bytes /sys/fs/cgroup/etch-test-$$:memory.max; do
  [ -z "$group" ] && [ -d "$(dirname "${at%:*}")" ] && mkdir "${at%:*}" 2>/dev/null || continue
  if echo $((40 << 20)) 2>/dev/null >"${at%:*}/${at#*:}"; then group=${at%:*} limit=${at#*:}; else rmdir "${at%:*}"; fi
done
[ -z "$group" ] || trap 'rmdir "$group"; rm -rf "$work"' EXIT
if [ -z "$group" ] || ! dd if=/dev/kmsg iflag=nonblock bs=8192 count=1 >/dev/null 2>&1; then
  echo "no cgroup with a limit, or no kernel log, here: out of memory is not tested"
  done_checking
  exit 0
fi
[ "$limit" != memory.max ] || echo 0 2>/dev/null >"$group/memory.swap.max" || true
cat >eat.c <<'C'
#include <stdlib.h>
#include <string.h>
static char *keep[100000];
static unsigned n;
static void take(size_t size)
{
    char *p = malloc(size);
    memset(p, 1, size); /* @take */
    keep[n++] = p;
}
int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++)
        take(1 << 20);
    return argc == 77;
}
C
"$ETCH" cc --record -O0 -g eat.c -o eat
rm -rf rings && mkdir rings
ETCH_RING=$work/rings ./eat 3
{ (echo $BASHPID >"$group/cgroup.procs" && ETCH_RING=$work/rings exec ./eat 4000) 2>/dev/null; } 2>/dev/null && fail "it should have been killed"
if timeout 5 dd if=/dev/kmsg iflag=nonblock bs=8192 2>/dev/null | grep -q 'Killed process [0-9]* (eat)'; then
  expect 0 "$ETCH" sketch ./eat --rings rings --json oom.json
  python3 - oom.json <<'P' || fail "another sketch of a program that was out of memory"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["headline"] == "out of memory in take() (SIGKILL)", s["headline"]
assert s["failure"]["cause"] == "no_memory" and "memory cgroup" in s["failure"]["message"], s["failure"]
assert s["failing_place"]["function"] == "take", s["failing_place"]
P
  expect 0 "$ETCH" record --rings rings -o killed.etch
  has "$work/err" "cgroup was out of memory"
else
  echo "the kernel's log has lost it: out of memory is not tested"
fi
done_checking
