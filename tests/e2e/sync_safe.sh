#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library that records synchronisation does no harm to a program in a sandbox, to one that may not read the time, to a child that
# fork() did not make, to one with rights that it was given; and a thousand threads do not cost it gigabytes.
. "$(dirname "$0")/lib.sh"
cd "$work"

# ---- A sandbox ----
# The filter ends the process at what the C library itself does not need. The software recorder and this library meet in one program.
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
#include <unistd.h>

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;

static void *thread(void *arg)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        total += (unsigned long)arg;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void forbid(const char *how)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect), ALLOW(SYS_madvise), ALLOW(SYS_brk), ALLOW(SYS_clone),
        ALLOW(SYS_clone3), ALLOW(SYS_futex), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq), ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_rt_sigaction), ALLOW(SYS_getrandom), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    if (strcmp(how, "tsc") == 0 && prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
        exit(77);
    if (strcmp(how, "filter") == 0 &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
        exit(77);
}

int main(int argc, char **argv)
{
    pthread_t t[3];

    setvbuf(stdout, NULL, _IONBF, 0);
    forbid(argc > 1 ? argv[1] : "");
    for (unsigned long i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, thread, (void *)(i + 1)))
            return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("%lu\n", total);
    if (argc > 1 && strcmp(argv[1], "strict") == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        syscall(SYS_exit, 0);
    }
    return 0;
}
C
"$ETCH_CC" -O1 -g -pthread sandbox.c -o plain
"$ETCH" cc --record -O1 -g -pthread sandbox.c -o both
for program in plain:none both:soft; do
  for how in filter tsc strict; do
    rm -f one.etch
    expect 0 "$ETCH" record --source ${program#*:} -o one.etch ./${program%:*} $how
    has "$work/out" "600"
    [ $how != filter ] || ! grep -q " 0 synchronisation events" "$work/err" || fail "no synchronisation events in a sandbox"
    expect 0 "$ETCH" info one.etch
    [ $how != tsc ] || has "$work/out" "no ring ("
  done
done

# ---- A child that fork() did not make ----
# Its events are not among its parent's.
cat >clone.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int status = 0;
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    for (int i = 0; i < (pid ? 10 : 500); i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    if (pid == 0)
        _exit(0);
    waitpid((pid_t)pid, &status, 0);
    printf("%d\n", status);
    return 0;
}
C
"$ETCH_CC" -O1 -g -pthread clone.c -o clone
expect 0 "$ETCH" record --source none -o clone.etch ./clone
has "$work/err" " 20 synchronisation events"

# ---- A thousand threads ----
# All there at once; each makes more events than a small ring has room for. What it costs the program is what it maps and touched.
cat >thousand.cpp <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <thread>
#include <vector>
static pthread_barrier_t all;
static long shared_kb()
{
    char line[256];
    long kb = -1;
    std::FILE *f = std::fopen("/proc/self/status", "r");
    while (f && std::fgets(line, sizeof(line), f))
        if (std::strncmp(line, "RssShmem:", 9) == 0)
            kb = std::atol(line + 9);
    if (f)
        std::fclose(f);
    return kb;
}
int main()
{
    std::vector<std::thread> threads;
    pthread_barrier_init(&all, nullptr, 1000);
    for (int i = 0; i < 999; i++)
        threads.emplace_back([] {
            pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
            for (int k = 0; k < 1500; k++) {
                pthread_mutex_lock(&own);
                pthread_mutex_unlock(&own);
            }
            pthread_barrier_wait(&all);
        });
    pthread_barrier_wait(&all);
    std::printf("%ld\n", shared_kb());
    for (auto &t : threads)
        t.join();
}
C
"${ETCH_CC/clang/clang++}" -std=c++17 -O2 -g -pthread thousand.cpp -o thousand 2>/dev/null || c++ -std=c++17 -O2 -g -pthread thousand.cpp -o thousand
expect 0 "$ETCH" record --source none -o thousand.etch ./thousand
kb=$(cat "$work/out")
echo "1000 threads: $kb KiB"
[ "$kb" -gt 1000 ] && [ "$kb" -lt 100000 ] || fail "1000 threads take $kb KiB of the program's memory"
checks=$((checks + 1))

# ---- A limit on files ----
# It is said, and the program not started; without synchronisation it is recorded.
expect 125 bash -c "ulimit -f 4096 && '$ETCH' record --source none -o limit.etch ./clone"
has "$work/err" "--no-sync"
expect 0 bash -c "ulimit -f 4096 && '$ETCH' record --source none --no-sync -o limit.etch ./clone"

# ---- Rights that the program was given ----
# The library does not obey its variable: a file of the right size stays as it is. (The dynamic linker drops LD_PRELOAD, but a program
# may be linked with the library.)
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  printf '#include <pthread.h>\nint main(void) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; return pthread_mutex_lock(&m) || pthread_mutex_unlock(&m); }\n' >linked.c
  cp "$ETCH_BUILD/etch-sync.so" .
  "$ETCH_CC" linked.c -o linked ./etch-sync.so -Wl,-rpath,"$work" -Wl,--allow-shlib-undefined -pthread
  # Behind the head nothing is looked at before it is used: version and magic are those of ring.h.
  python3 - "$ETCH_SOURCE/collector/sync/ring.h" memory <<'P'
import re, struct, sys
text = open(sys.argv[1]).read()
magic = int(re.search(r'MAGIC (0x[0-9a-f]+)', text).group(1), 16)
version = int(re.search(r'SYNC_VERSION (\d+)', text).group(1))
with open(sys.argv[2], 'wb') as f:
    f.write(struct.pack('<QI', magic, version))
    f.truncate(256 << 20)
P
  chmod 755 "$work" linked etch-sync.so
  chmod 666 memory
  expect 0 setpriv --reuid=65534 --regid=65534 --clear-groups env ETCH_SYNC="$work/memory" ./linked
  before=$(od -An -t u4 -j 20 -N 4 memory | tr -d ' ')
  if [ "$before" != 0 ]; then # so an ordinary program obeys it
    dd if=/dev/zero of=memory bs=1 seek=20 count=4 conv=notrunc 2>/dev/null
    chmod 4755 linked
    expect 0 setpriv --reuid=65534 --regid=65534 --clear-groups env ETCH_SYNC="$work/memory" ./linked
    [ "$(od -An -t u4 -j 20 -N 4 memory | tr -d ' ')" = 0 ] || fail "a setuid program obeys ETCH_SYNC"
    checks=$((checks + 1))
  else
    echo "not checked: no setuid programs here"
  fi
fi
done_checking
