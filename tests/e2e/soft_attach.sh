#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch record --pid --source soft: the recorder of a running program is switched on and off. The last recorded statement is right at any
# death. The program notices nothing: its code is the same afterwards, no waiting call ends early, and etch may be killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/steps.sh"
cd "$work"
[ "$(id -u)" -eq 0 ] || [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || skip "only root may trace other programs here"
ulimit -S -c 0
pids=
trap 'for p in $pids; do kill -9 $p 2>/dev/null || true; done; rm -rf "$work"' EXIT
unset ETCH_RING

# start COMMAND...: starts it, and waits until it says something. Sets pid
start() {
  rm -f said
  "$@" >said 2>&1 &
  pid=$!
  pids="$pids $pid"
  until [ -s said ]; do kill -0 $pid || fail "$* ended"; sleep 0.02; done
}
# end: kills it
end() {
  kill -9 $pid 2>/dev/null || true
  wait $pid 2>/dev/null || true
}
# steps: how many steps are done
steps() { od -An -t u8 -j 8 -N 8 seen | tr -d ' '; }
# until_rings: waits until the process has rings, and has run 2,000 steps since
until_rings() {
  local from
  until grep -q etch-rings /proc/$pid/maps; do kill -0 $pid || fail "it ended"; sleep 0.02; done
  from=$(steps)
  until [ "$(steps)" -gt $((from + 2000)) ]; do kill -0 $pid || fail "it ended"; sleep 0.02; done
}
cat >same_code.py <<'P'
# The code of a process is that of its files.
import sys
pid, program = sys.argv[1:]
memory = open("/proc/%s/mem" % pid, "rb")
seen = 0
for line in open("/proc/%s/maps" % pid):
    words = line.split()
    if len(words) > 5 and words[5] == program and "x" in words[1]:
        low, high = (int(w, 16) for w in words[0].split("-"))
        memory.seek(low)
        now = memory.read(high - low)
        with open(program, "rb") as f:
            f.seek(int(words[2], 16))
            was = f.read(high - low)
        seen += 1
        different = [i for i in range(len(was)) if was[i] != now[i]]
        if different:
            sys.exit("%d bytes differ, the first at %#x" % (len(different), different[0]))
sys.exit(not seen)
P

# ---- The last statement, at any death ----
{
  printf '#include <stdio.h>\n#include <stdlib.h>\n#include <fcntl.h>\n#include <sys/mman.h>\n#include <unistd.h>\n'
  step_source
  cat <<'C'
static unsigned long at;
static int __attribute__((noinline)) some(int n)
{
    int sum = 0;
    while (n--) {
        at++;
        sum += step(at);
        seen[1] = at;
    }
    return sum;
}
int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600), sum = 0;

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 2;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    puts("runs");
    fflush(stdout);
    for (;;) {
        sum += some(1000);
        if (argc > 2 && access(argv[2], F_OK) == 0)
            *(volatile int *)8 = sum; /* @fault */
    }
}
C
} >count.c
write_last
fault=$(grep -n '@fault' count.c | cut -d: -f1)
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g count.c -o count
  for i in 1 2 3; do
    rm -f seen one.etch
    start ./count seen
    "$ETCH" record --pid $pid --source soft --wall 60 -o one.etch >out 2>err &
    recorder=$!
    until_rings
    end
    wait $recorder || true
    "$ETCH" decode one.etch --as line --last 3000 >lines 2>said.err || { cat err said.err >&2; fail "no replay"; }
    # shellcheck disable=SC2046
    python3 last.py count.c lines $(od -An -t u8 -N 16 seen) >told 2>&1 || { tail -n 20 lines >&2; cat told >&2; fail "$level: death $i"; }
    checks=$((checks + 1))
  done

  # On and off, and the same code afterwards. Then on again, until it crashes.
  rm -f seen go one.etch
  start ./count seen go
  expect 0 "$ETCH" record --pid $pid --source soft --wall 0.5 -o one.etch
  has err "the program goes on"
  python3 same_code.py $pid "$work/count" || fail "the code is not what it was"
  expect 0 "$ETCH" decode one.etch --as line --last 200
  has out "count.c"
  rm -f one.etch
  "$ETCH" record --pid $pid --source soft --wall 60 -o one.etch >out 2>err &
  recorder=$!
  until grep -q '^TracerPid:.*[1-9]' /proc/$pid/status; do sleep 0.02; done
  until ! python3 same_code.py $pid "$work/count" >/dev/null; do sleep 0.02; done
  touch go
  wait $recorder && fail "it should have died"
  wait $pid 2>/dev/null || true
  has err "Segmentation fault"
  expect 0 "$ETCH" sketch ./count one.etch
  has out "SIGSEGV in main()  count.c:$fault"
  expect 0 "$ETCH" decode one.etch --as line --last 50
  grep -q 'count.c:.* some' out || fail "no control flow before the crash"
done

# ---- Threads, in C++ ----
cat >threads.cpp <<'C'
#include <atomic>
#include <chrono>
#include <cstdio>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
static std::atomic<unsigned long> done[4];
template <class T> static T twice(T x) { return x + x; }
__attribute__((noinline)) static unsigned long work(unsigned long i)
{
    if (i % 3 == 0)
        throw std::runtime_error("third " + std::to_string(i));
    return twice(i);
}
__attribute__((noinline)) static bool one(int number)
{
    unsigned long i = done[number]++;
    try {
        return work(i) == 2 * i;
    } catch (const std::runtime_error &e) {
        return std::string(e.what()) == "third " + std::to_string(i);
    }
}
static void *run(void *number)
{
    int n = (int)(long)number;
    while (one(n))
        ;
    std::printf("thread %d went wrong\n", n);
    _exit(1);
}
int main()
{
    pthread_t t;
    pthread_create(&t, nullptr, run, (void *)1);
    std::thread a(run, (void *)2), b(run, (void *)3);
    std::puts("runs");
    std::fflush(stdout);
    for (;;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
C
for level in -O0 -O2; do
  "$ETCH" c++ --record $level -g -std=c++17 -pthread threads.cpp -o threads
  start ./threads
  for i in 1 2; do
    expect 0 "$ETCH" record --pid $pid --source soft --wall 0.5 -o one.etch
    has err "the program goes on"
    python3 same_code.py $pid "$work/threads" || fail "the code is not what it was"
    for thread in $(ls /proc/$pid/task); do
      [ "$thread" != "$pid" ] || continue
      expect 0 "$ETCH" decode one.etch --as line --thread "$thread" --last 5000
      has out "threads.cpp"
    done
    rm one.etch
  done
  # etch is killed: the program goes on, and the next etch ends the recording.
  "$ETCH" record --pid $pid --source soft --wall 60 -o one.etch >out 2>err &
  recorder=$!
  until ! python3 same_code.py $pid "$work/threads" >/dev/null; do sleep 0.02; done
  kill -9 $recorder
  wait $recorder 2>/dev/null || true
  rm -f one.etch
  expect 0 "$ETCH" record --pid $pid --source soft --wall 0.2 -o one.etch
  python3 same_code.py $pid "$work/threads" || fail "the code is not what it was after etch was killed"
  kill -0 $pid || fail "the program ended"
  [ "$(cat said)" = runs ] || { cat said >&2; fail "the program noticed something"; }
  end
done

# ---- Calls that wait, and a program that has rings ----
cat >waits.c <<'C'
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>
static void *in_semop(void *unused)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0};

    (void)unused;
    semctl(id, 0, SETVAL, 0);
    if (semop(id, &take, 1) < 0)
        printf("semop: %d\n", errno), fflush(stdout);
    return NULL;
}
static void *in_sigwait(void *unused)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (sigwaitinfo(&set, NULL) < 0)
        printf("sigwaitinfo: %d\n", errno), fflush(stdout);
    return unused;
}
int main(void)
{
    struct epoll_event event;
    pthread_t t;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&t, NULL, in_semop, NULL);
    pthread_create(&t, NULL, in_sigwait, NULL);
    puts("runs");
    fflush(stdout);
    if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0)
        printf("epoll_wait: %d\n", errno), fflush(stdout);
    pause();
}
C
"$ETCH" cc --record -O2 -g -pthread waits.c -o waits
start ./waits
until [ "$(awk '/^State/ { print $2 }' /proc/$pid/task/*/status | tr -d '\n')" = SSS ]; do sleep 0.02; done
expect 0 "$ETCH" record --pid $pid --source soft --wall 0.2 -o one.etch
has err "no recorded function was called"
[ "$(cat said)" = runs ] || { cat said >&2; fail "a call that waits ended early"; }
for i in $(seq 50); do # if the call is not made again, the thread says so now
  [ "$(awk '/^State/ { print $2 }' /proc/$pid/task/*/status | tr -d '\n')" != SSS ] || break
  sleep 0.02
done
[ "$(cat said)" = runs ] || { cat said >&2; fail "a call that waits ended early"; }
end
mkdir rings
rm -f seen
ETCH_RING=$work/rings start ./count seen
expect 0 "$ETCH" record --pid $pid --source soft --wall 0.2 -o one.etch
expect 0 "$ETCH" decode one.etch --as line --last 50
has out "count.c"
end

# ---- Reasons not to ----
cat >sandbox.c <<'C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, all};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    puts(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? "no filter" : "runs");
    fflush(stdout);
    for (;;)
        pause();
}
C
"$ETCH" cc --record -O2 -g sandbox.c -o sandbox
start ./sandbox
if grep -q runs said; then
  expect 125 "$ETCH" record --pid $pid --source soft --wall 0.2 -o one.etch
  has err "it is in a sandbox (seccomp)"
  kill -0 $pid || fail "the program ended"
fi
end
"$ETCH_CC" -O2 -g count.c -o unrecorded
rm -f seen
start ./unrecorded seen
expect 125 "$ETCH" record --pid $pid --source soft --wall 0.2 -o one.etch
has err "has no software recorder"
end
done_checking
