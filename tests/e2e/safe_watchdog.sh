#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A stopped etch does not stop the program: it is woken to let go, says so in the bundle, is stopped again, and in the end has the
# program's own status. The program loses nothing, no signal either.
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >busy.cc <<'C'
// Makes threads and sends itself signals without end: for each of them a traced program waits for its tracer. At SIGTERM it
// checks that nothing was lost and ends with status 7.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

static volatile sig_atomic_t got, end;
static std::atomic<long> made;

static void on_signal(int) { got = got + 1; }
static void on_end(int) { end = 1; }

int main(int, char **argv)
{
    using clock = std::chrono::steady_clock;
    long sent = 0, longest = 0, threads = 0;

    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_end);
    while (!end) {
        auto before = clock::now();

        std::thread([] { made++; }).join();
        threads++;
        raise(SIGUSR1);
        sent++;
        long took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - before).count();
        if (took > longest)
            longest = took;
        FILE *file = fopen("turns.new", "w");
        fprintf(file, "%ld %ld\n", sent, longest);
        fclose(file);
        rename("turns.new", argv[1]);
    }
    return got == sent && made == threads ? 7 : 1;
}
C
c++ -std=c++17 -O2 -g busy.cc -o busy -pthread || skip "no C++ compiler"

turns() { cut -d' ' -f1 turns 2>/dev/null || echo 0; }
state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"; }
# until_more N: the program has gone on by so many turns
until_more() {
  local from
  from=$(turns)
  for _ in $(seq 3000); do
    [ "$(turns)" -lt $((from + $1)) ] || return 0
    sleep 0.01
  done
  fail "the program stands still at turn $(turns)"
}

for how in launched joined; do
  rm -f turns run.etch
  if [ $how = launched ]; then
    "$ETCH" record --source none --clock 0 -o run.etch -- ./busy turns 2>err &
    etch=$!
    until [ -s turns ]; do kill -0 $etch || { cat err >&2; fail "etch ended"; }; sleep 0.01; done
    pid=$(program_of $etch)
  else
    ./busy turns &
    pid=$!
    until [ -s turns ]; do sleep 0.01; done
    "$ETCH" record --source none --clock 0 -o run.etch --pid $pid 2>err &
    etch=$!
    until [ "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")" != 0 ]; do sleep 0.01; done
  fi
  until_more 20
  kill -STOP $etch
  until_more 500 # without the watchdog it would not make one
  if [ $how = launched ]; then
    for _ in $(seq 3000); do [ "$(state $etch)" != T ] || break; sleep 0.01; done
    [ "$(state $etch)" = T ] || fail "etch was not stopped again"
    [ "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")" = 0 ] || fail "the program is still traced"
    kill -CONT $etch
  fi
  got=0
  if [ $how = launched ]; then
    kill -TERM $etch # it is passed on
    wait $etch || got=$?
  else
    wait $etch || fail "etch failed"
    kill -TERM $pid
    wait $pid || got=$?
  fi
  [ "$got" -eq 7 ] || { cat err >&2; fail "$how: the status is $got, not 7"; }
  echo "$how: stopped for $(cut -d' ' -f2 turns) ms at most"
  has err "recorder starved"
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" info --records run.etch
  has out '"cause":"starved"'
  checks=$((checks + 2))
done

# Under QEMU a thread waits for etch when its ring is full: not for one that is stopped.
if has_vpt; then
  cat >jumps.c <<'C'
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long one(unsigned long n) { return n + 1; }
static unsigned long other(unsigned long n) { return n ^ 1; }
static unsigned long (*volatile ways[])(unsigned long) = {one, other};

/* Several bytes of trace a turn, so that the ring is full soon. */
int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
    volatile unsigned long *seen;
    unsigned long sum = 0;

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 2;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (unsigned long i = 1; i; i++) {
        sum = ways[i & 1](sum);
        seen[0] = i;
    }
    return (int)sum;
}
C
  "$ETCH_CC" -O1 -g jumps.c -o jumps
  jumps() { [ -s seen ] && od -An -t u8 -N 8 seen | tr -d ' ' || echo 0; }
  "$ETCH" record --source vpt -o run.etch -- ./jumps seen 2>err &
  etch=$!
  until [ "$(jumps)" -gt 1000 ]; do kill -0 $etch || { cat err >&2; fail "etch ended"; }; sleep 0.01; done
  kill -STOP $etch
  from=$(jumps)
  for _ in $(seq 3000); do
    [ "$(jumps)" -lt $((from + 1500000)) ] || break
    sleep 0.01
  done
  [ "$(jumps)" -ge $((from + 1500000)) ] || fail "vpt: the program stands still after $(($(jumps) - from)) turns"
  kill -CONT $etch
  kill -KILL "$(program_of $etch)"
  wait $etch || true
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" info --records run.etch
  has out '"cause":"starved"'
  checks=$((checks + 1))
fi

# An etch that is left in peace lets nothing go: the watchdog does not bark at it.
expect 0 "$ETCH" record --source none --clock 0 -o run.etch -- sleep 1.5
! grep -q "let go" err || fail "the watchdog barked for nothing"
[ -z "$(pgrep -x etch-watchdog -P $$)" ] || fail "a watchdog is left"
done_checking
