#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch killed with SIGKILL while it records with soft and vpt: the program lives on, and etch record --recover has what was
# recorded, up to the last statement that ran, with the loss told. What killed etches leave is bounded.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/steps.sh"
own_memory "$@"
cd "$work"
{
  cat <<'C'
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
C
  step_source
  cat <<'C'
int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600), sum = 0;

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 2;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (unsigned long i = 1; i; i++) {
        sum += step(i);
        seen[1] = i;
    }
    return sum == 77;
}
C
} >count.c
write_last

began() { [ -s seen ] && [ "$(od -An -t u8 -j 8 -N 8 seen | tr -d ' ')" -gt 1000 ]; }
kept() { find /dev/shm -mindepth 2 -maxdepth 2 -name 'run-*' | wc -l; }

# kill_etch SOURCE PROGRAM...: etch dies while the program runs; then, or before it, the program
kill_etch() {
  local source=$1 first=$2 pid
  shift 2
  rm -f seen run.etch
  "$ETCH" record --clock 0 --source "$source" -o run.etch -- "$@" seen >out 2>err &
  etch=$!
  until began; do kill -0 $etch || { cat err >&2; fail "$source: etch ended"; }; sleep 0.01; done
  pid=$(program_of $etch)
  [ "$first" = etch ] || kill -STOP "$pid"
  kill -KILL $etch
  wait $etch 2>/dev/null || true
  kill -0 "$pid" || fail "$source: the program died with etch"
  kill -KILL "$pid"
  until [ ! -d "/proc/$pid" ] || grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; do sleep 0.01; done
}

# ---- soft: the rings go on with the program, and its last statement is there
"$ETCH" cc --record -O2 -g count.c -o count
for i in 1 2; do
  kill_etch soft etch ./count
  expect 0 "$ETCH" info run.etch
  has out ", cut"
  expect 0 "$ETCH" record --recover -o whole.etch
  has err "1 loss (etch was killed)"
  expect 0 "$ETCH" info --verify whole.etch
  expect 0 "$ETCH" info --records whole.etch
  has out '"cause":"killed"'
  "$ETCH" decode whole.etch --as line --last 3000 >lines 2>err || { cat err >&2; fail "no replay"; }
  # shellcheck disable=SC2046
  python3 last.py count.c lines $(od -An -t u8 -N 16 seen) || fail "soft, kill $i"
  checks=$((checks + 1))
done
[ "$(kept)" -eq 0 ] || fail "a recovered recording is still in memory"
expect 125 "$ETCH" record --recover -o none.etch
has err "nothing to recover"
[ ! -e none.etch ] || fail "a bundle of nothing"

# ---- It is mentioned, it is not written over, and it is kept within bounds
kill_etch soft etch ./count
expect 0 "$ETCH" record --clock 0 --source none -o other.etch -- true
has err "1 recording ended because etch was killed"
cp run.etch before.etch
expect 125 "$ETCH" record --recover -o run.etch
has err "is not written over"
same before.etch run.etch
for i in 1 2 3 4 5 6 7 8; do kill_etch soft etch ./count; done
[ "$(kept)" -eq 9 ] || fail "$(kept) are kept before the next start, not 9"
expect 0 "$ETCH" record --clock 0 --source none -o other.etch -- true
has err "removed the rings of 1 killed etch process"
has err "8 recordings ended because etch was killed"
[ "$(kept)" -eq 8 ] || fail "$(kept) are kept, not 8"
# One that lives is not taken.
rm -f seen
"$ETCH" record --clock 0 --source soft -o live.etch -- ./count seen >out 2>err &
etch=$!
until began; do sleep 0.01; done
newest=$(find /dev/shm -mindepth 2 -maxdepth 2 -name 'run-*' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
expect 125 "$ETCH" record --recover="$newest" -o none.etch
has err "lives"
kill -KILL "$(program_of $etch)"
wait $etch || true
for i in 1 2 3 4 5 6 7 8; do expect 0 "$ETCH" record --recover -o "whole$i.etch"; done
[ "$(kept)" -eq 0 ] || fail "not all were recovered"

# ---- vpt: the rings keep what etch had not taken yet
if has_vpt; then
  "$ETCH_CC" -O2 -g count.c -o plain
  for first in etch program; do
    kill_etch vpt $first ./plain
    "$ETCH" decode run.etch --as line >before 2>/dev/null || true
    expect 0 "$ETCH" record --recover -o whole.etch
    expect 0 "$ETCH" info --records whole.etch
    has out '"cause":"killed"'
    "$ETCH" decode whole.etch --as line >after 2>err || { cat err >&2; fail "vpt: no replay"; }
    n=$(grep -c 'count\.c:' before || true) m=$(grep -c 'count\.c:' after)
    [ "$m" -ge "$n" ] && [ "$m" -gt 0 ] || fail "vpt: $m lines after the recovery, $n before it"
    # What the bundle had is what the recovery begins with.
    head -n "$((n > 20 ? n - 20 : 1))" <(grep 'count\.c:' before) >a
    head -n "$((n > 20 ? n - 20 : 1))" <(grep 'count\.c:' after) >b
    [ "$n" -le 20 ] || same a b
    # shellcheck disable=SC2046
    [ $first = etch ] || python3 last.py count.c after $(od -An -t u8 -N 16 seen) || fail "vpt: the last statement"
    checks=$((checks + 1))
  done
fi
done_checking
