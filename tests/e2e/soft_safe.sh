#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program with a recorder in it does what it does without, wherever it runs: in a sandbox, on a handler's small stack, with a limit on
# files, as a library that is unloaded, with rights that it was given, where its folder is no longer to be reached. What is not
# recorded for such a reason is told. soft_safe_space.sh has the full disk.
. "$(dirname "$0")/lib.sh"
cd "$work"

# build NAME FLAGS...: NAME.c (or .cpp) with a recorder
build() {
  local name=$1 driver=cc source=$1.c
  shift
  [ ! -e "$name.cpp" ] || { driver=c++ source=$name.cpp; }
  "$ETCH" $driver --record -g -pthread "$source" -o "$name" "$@" || fail "$name was not built"
}

# recorded ARGS...: runs with fresh rings; its output in out
recorded() {
  rm -rf rings
  mkdir rings
  expect 0 env ETCH_RING="$work/rings" "$@"
}

# bundle: of the rings, in one.etch; what is said in err
bundle() {
  rm -f one.etch
  expect 0 "$ETCH" record --rings rings -o one.etch
}

# lost CAUSE: the bundle has such a loss, and info says so
lost() {
  expect 0 "$ETCH" info one.etch
  has "$work/out" "$1 ("
}

# ---- A sandbox ----
# Only what the C library itself needs to make threads, to fork and to end is allowed; anything else is death.
cat >sandbox.c <<'C'
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static volatile unsigned long total;

static unsigned long __attribute__((noinline)) work(unsigned long n)
{
    unsigned long sum = 0;

    for (unsigned long i = 0; i < n; i++)
        sum += i % 3 ? i : 1;
    return sum;
}

static void *thread(void *arg)
{
    total += work((unsigned long)arg);
    return arg;
}

static void forbid(int by_prctl)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect), ALLOW(SYS_madvise), ALLOW(SYS_brk),
        ALLOW(SYS_clone), ALLOW(SYS_clone3), ALLOW(SYS_futex), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),
        ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_rt_sigaction), ALLOW(SYS_getrandom), ALLOW(SYS_write), ALLOW(SYS_wait4), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) : syscall(SYS_seccomp, 1, 0, &program))
        exit(77);
}

int main(int argc, char **argv)
{
    pthread_t t;
    int status = 0;

    setvbuf(stdout, NULL, _IONBF, 0);
    forbid(argc > 1 && argv[1][0] == 'p');
    for (unsigned long i = 0; i < 3; i++) {
        if (pthread_create(&t, NULL, thread, (void *)(20000 + i)))
            return 2;
        pthread_join(t, NULL);
    }
    if (fork() == 0)
        exit(work(30000) == 0);
    wait(&status);
    printf("%lu %d\n", total, status);
    return 0;
}
C
for level in -O0 -O2; do
  build sandbox $level
  expect 0 ./sandbox prctl
  cp "$work/out" want
  for how in prctl seccomp; do
    recorded ./sandbox $how
    same "$work/out" want
    bundle
    has "$work/err" "5 threads in 2 processes"
    expect 0 "$ETCH" decode one.etch --as call
    has "$work/out" "thread"
  done
done

# SECCOMP_MODE_STRICT allows read, write and exit, and no time stamps; so does PR_SET_TSC for the latter.
cat >strict.c <<'C'
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int __attribute__((noinline)) step(int i)
{
    return i % 3 ? i : -i;
}

int main(int argc, char **argv)
{
    volatile int sum = 0;

    (void)argv;
    if (argc > 1 ? prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 77;
    for (int i = 0; i < 100000; i++)
        sum += step(i);
    write(1, sum ? "sum\n" : "0\n", 4);
    syscall(SYS_exit, 0);
}
C
for level in -O0 -O2; do
  build strict $level
  for how in '' tsc; do
    # shellcheck disable=SC2086
    recorded ./strict $how
    has "$work/out" "sum"
    bundle
    expect 0 "$ETCH" decode one.etch --as line --last 1000
    has "$work/out" "strict.c"
  done
done
# One that is started so: not a dynamic one, since the dynamic linker reads the time itself.
cat >untimed.c <<'C'
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    return argc < 2 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) || execv(argv[1], argv + 1);
}
C
printf 'int main(int n, char **v) { int s = 0; for (int i = 0; i < 50000; i++) s += i %% n; return s == 1 || !v; }\n' >plain.c
cc untimed.c -o untimed
build plain -O1 -static
recorded ./untimed ./plain
bundle

# ---- A handler on a small stack ----
# The stack ends at a page that may not be touched. The thread's first recorded code is the handler; the chunk runs full in it.
cat >handler.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *outside(void *);
static volatile int ran, sum;
void on_signal(int signal)
{
    for (int i = 0; i < 20000; i++)
        sum += i % 3 ? 1 : 2;
    ran += signal != 0;
}
int main(void)
{
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        pthread_create(&t, NULL, outside, (void *)on_signal);
        pthread_join(t, NULL);
    }
    printf("%d\n", ran);
    return 0;
}
C
cat >outside.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#define BELOW 65536ul
static __thread unsigned long first;
static void look(int signal)
{
    (void)signal;
    first = (unsigned long)__builtin_frame_address(0);
}
static void handle(char *at, unsigned long size, void (*handler)(int))
{
    stack_t stack = {.ss_sp = at, .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        _exit(3);
    pthread_kill(pthread_self(), SIGUSR1);
}
/* First it is seen how much of a stack the kernel takes itself. Then there is 1 KiB for the handler, and below it nothing. */
void *outside(void *handler)
{
    char *at = mmap(NULL, 2 * BELOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long taken;

    handle(at, 2 * BELOW, look);
    taken = (unsigned long)at + 2 * BELOW - first;
    mprotect(at, BELOW, PROT_NONE);
    handle(at, BELOW + ((taken + 1024 + 63) & ~63ul), (void (*)(int))handler);
    return NULL;
}
C
cc -O2 -c outside.c -o outside.o
for level in -O0 -O2; do
  "$ETCH" cc --record -g $level -pthread handler.c outside.o -o handler
  recorded ./handler
  has "$work/out" "3"
  bundle
  expect 0 "$ETCH" decode one.etch --as call
  has "$work/out" "on_signal"
done

# ---- A limit on files ----
build plain -O1
for kb in 0 1 64 170 200 1000; do
  rm -rf rings && mkdir rings
  expect 0 bash -c "ulimit -f $kb && ETCH_RING=$work/rings ./plain"
  if [ $kb -le 170 ]; then
    expect 125 "$ETCH" record --rings rings -o one.etch
    has "$work/err" "a process found no room for its rings"
  else
    bundle
  fi
done

# ---- A library that is unloaded ----
cat >library.c <<'C'
static int state;
int step(int n)
{
    for (int i = 0; i < n; i++)
        state += i % 3 ? 1 : 2;
    return state;
}
C
cat >host.c <<'C'
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* Lines of /proc/self/maps. */
static int mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0, c;

    while ((c = getc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}
int main(int argc, char **argv)
{
    int before = 0, after, status, sum = 0;

    for (int i = 0; i < 100; i++) {
        void *library = dlopen(argv[argc - 1], RTLD_NOW);
        int (*step)(int) = library ? (int (*)(int))dlsym(library, "step") : NULL;

        if (!step)
            return puts(dlerror()), 2;
        sum += step(1000); /* its state begins anew each time */
        if (dlclose(library))
            return 3;
        if (fork() == 0)
            _exit(0);
        wait(&status);
        if (status)
            return 4;
        if (i == 1)
            before = mappings();
    }
    after = mappings();
    printf("%d %s\n", sum, after > before + 2 ? "more mappings" : "no more mappings");
    return 0;
}
C
cc host.c -o host -ldl
for level in -O0 -O2; do
  "$ETCH" cc --record -g $level -fPIC -shared library.c -o library.so
  recorded ./host ./library.so
  has "$work/out" "133400 no more mappings"
  [ "$(ls rings | wc -l)" -eq 1 ] || { ls rings >&2; fail "not one file of rings"; }
  bundle
  expect 0 "$ETCH" decode one.etch --as call
  has "$work/out" "step"
done
# The host has a recorder too: then the pool is the host's.
"$ETCH" cc --record -g -O2 host.c -o hosted -ldl
recorded ./hosted ./library.so
has "$work/out" "133400 no more mappings"
bundle

# ---- A child that fork() did not make ----
cat >clones.c <<'C'
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static unsigned long __attribute__((noinline)) work(unsigned long n)
{
    unsigned long sum = 0;

    for (unsigned long i = 0; i < n; i++)
        sum += i % 3 ? i : 1;
    return sum;
}
int main(int argc, char **argv)
{
    int status = 0;
    long pid = argc > 1 ? (argv[1][0] == 'F' ? _Fork() : fork()) : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    unsigned long sum = work(pid ? 40000 : 20000);

    if (pid == 0)
        _exit(sum == 0);
    waitpid((pid_t)pid, &status, 0);
    printf("%lu %d\n", sum, status);
    return 0;
}
C
for level in -O0 -O2; do
  build clones $level
  expect 0 ./clones
  cp "$work/out" want
  recorded ./clones
  same "$work/out" want
  bundle
  has "$work/err" "1 thread in 1 process"
  has "$work/err" "began in their parent's ring"
  lost "ring of two processes"
  for how in fork _Fork; do
    recorded ./clones ${how/_/}
    same "$work/out" want
    bundle
    has "$work/err" "2 threads in 2 processes"
  done
done

# ---- More threads than rings ----
cat >many.cpp <<'C'
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
static int work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i % 3 ? 1 : 2;
    return sum;
}
int main(int argc, char **argv)
{
    int n = atoi(argv[1]), sums = 0;
    std::vector<std::thread> all;
    bool together = argc > 2;
    for (int i = 0; i < n; i++) {
        all.emplace_back([&sums] { __atomic_fetch_add(&sums, work(1000), __ATOMIC_RELAXED); });
        if (!together)
            all.back().join();
    }
    for (auto &t : all)
        if (t.joinable())
            t.join();
    std::printf("%d\n", sums);
}
C
build many -O2 -std=c++17
recorded ./many 200
has "$work/out" "266800"
bundle
has "$work/err" "rings of ended threads were taken by later ones"
lost "ring reused"
recorded env ETCH_RING_THREADS=300 ./many 200
bundle
has "$work/err" "201 threads in 1 process"
grep -q "nothing lost" "$work/err" || { cat "$work/err" >&2; fail "something was lost"; }
rm -rf rings && mkdir rings
cat >held.c <<'C'
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t all;
static void *thread(void *arg)
{
    pthread_barrier_wait(&all);
    return arg;
}
int main(void)
{
    pthread_t t[20];
    pthread_barrier_init(&all, NULL, 20);
    for (int i = 0; i < 20; i++)
        pthread_create(&t[i], NULL, thread, NULL);
    for (int i = 0; i < 20; i++)
        pthread_join(t[i], NULL);
    return 0;
}
C
build held -O1
recorded env ETCH_RING_THREADS=5 ./held
bundle
has "$work/err" "5 threads in 1 process"
has "$work/err" "found no ring free"
lost "no ring"

# ---- Rings of processes that ended well ----
# The newest 16 stay, to be compared with those that failed, without the rings that were never used. Of a program that failed all stay.
recorded ./plain
for _ in $(seq 20); do ETCH_RING=$work/rings ./plain; done
[ "$(ls rings | wc -l)" -eq 16 ] || { ls rings >&2; fail "rings of processes that ended well were left"; }
[ "$(du -sk rings | cut -f1)" -le $((15 * 300 + 4300)) ] || { du -sk rings >&2; fail "processes that ended well keep too much"; }
printf '#include <stdlib.h>\nint main(int n, char **v) { (void)v; if (n > 1) abort(); return 3; }\n' >fails.c
build fails -O1
ETCH_RING=$work/rings ./fails && fail "it should have failed"
(ulimit -c 0; ETCH_RING=$work/rings ./fails 1) 2>/dev/null && fail "it should have failed"
ETCH_RING=$work/rings ./plain
[ "$(ls rings | wc -l)" -eq 18 ] || { ls -l rings >&2; fail "rings of failed processes were not kept"; }
# The folder's bound: the oldest of processes that are gone make room.
for _ in 1 2 3 4 5; do ETCH_RING=$work/rings ETCH_RING_MB=10 ./fails && fail "it should have failed"; done
[ "$(du -sk rings | cut -f1)" -le 10240 ] || { du -sk rings >&2; fail "the folder is beyond its bound"; }
expect 0 "$ETCH" record --rings rings -o one.etch
has "$work/err" "since the folder has a bound"
lost "limit reached"

# ---- What is said of a folder that is of no use ----
touch file
for folder in "$work/none" "$work/file"; do
  expect 0 env ETCH_RING="$folder" ./plain
  [ ! -s "$work/err" ] || fail "something was said that nobody asked for"
  expect 0 env ETCH_LOG=1 ETCH_RING="$folder" ./plain
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "it was not said once"
  has "$work/err" "etch: nothing is recorded: ETCH_RING=$folder"
  expect 0 env ETCH_RING="$folder" "$ETCH" doctor
  has "$work/out" "ETCH_RING"
  has "$work/out" "$folder"
done
expect 0 env ETCH_RING="$work/rings" "$ETCH" doctor
has "$work/out" "$work/rings"
expect 0 env -u ETCH_RING "$ETCH" doctor
! grep -q ETCH_RING "$work/out" || fail "doctor speaks of ETCH_RING where it is not set"
done_checking
