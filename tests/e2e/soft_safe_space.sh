#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Rings where there is no room for them, where the program may not write, and where it is no longer to be found: the program is
# unharmed, and what is not recorded is told. Needs a mount namespace of its own, and root in it.
. "$(dirname "$0")/lib.sh"
if [ -z "${ETCH_INSIDE:-}" ]; then
  for how in '-m' '-rm'; do
    if unshare $how bash -c 'mount -t tmpfs -o size=1m none /mnt' 2>/dev/null; then
      rm -rf "$work"
      ETCH_INSIDE=1 exec unshare $how bash "$0"
    fi
  done
  skip "no tmpfs can be mounted here: neither root nor user namespaces"
fi
cd "$work"
mkdir small
mount -t tmpfs -o size=64m none small
cat >threads.c <<'C'
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static unsigned long __attribute__((noinline)) work(unsigned long n)
{
    unsigned long sum = 0;

    for (unsigned long i = 0; i < n; i++)
        sum += i % 3 ? i : 1;
    return sum;
}
static void *thread(void *sum)
{
    __atomic_fetch_add((unsigned long *)sum, work(50000), __ATOMIC_RELAXED);
    return NULL;
}
/* What a server does when it has started. */
static int change(const char *how)
{
    if (strcmp(how, "chdir") == 0)
        return chdir("/");
    if (strcmp(how, "chroot") == 0)
        return chroot("/proc/self/fdinfo") || chdir("/");
    if (strcmp(how, "drop") == 0)
        return setgroups(0, NULL) || setgid(65534) || setuid(65534);
    if (strcmp(how, "close") == 0)
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t t[4];
    unsigned long sum = 0;
    int status;

    if (argc > 1 && change(argv[1]))
        return 3;
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, thread, &sum);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (fork() == 0)
        exit(work(50000) == 0);
    wait(&status);
    printf("%lu %d\n", sum, status);
    return 0;
}
C
for level in -O0 -O2; do
  "$ETCH" cc --record -g $level -pthread threads.c -o threads$level
done
expect 0 ./threads-O0
cp "$work/out" want

# fill KB: all of small but so much is taken
fill() {
  rm -rf small/*
  mkdir small/rings
  dd if=/dev/zero of=small/full bs=1k count=$((65536 - $1)) 2>/dev/null || true
}

# Whatever is left, the program is unharmed, and so is etch; there is a bundle of what was recorded, or it is said that nothing was.
for kb in 0 4 60 100 200 400 2000 65000; do
  for level in -O0 -O2; do
    fill $kb
    expect 0 env ETCH_RING="$work/small/rings" ./threads$level
    same "$work/out" want
    status=0
    "$ETCH" record --rings small/rings -o one.etch 2>err || status=$?
    case $status in
    0)
      [ $kb -gt 100 ] || fail "with $kb KiB free there were rings"
      expect 0 "$ETCH" decode one.etch --as call
      ;;
    125)
      [ $kb -lt 2000 ] || { cat err >&2; fail "with $kb KiB free there was nothing"; }
      has err "a process found no room for its rings"
      ;;
    *) fail "etch record --rings ended with $status" ;;
    esac
    checks=$((checks + 1))
  done
  # Half of what was free is the program's.
  used=$(du -sk small/rings | cut -f1)
  [ $((used * 2)) -le $((kb + 64)) ] || fail "of $kb KiB $used were taken"
done
# The default of a process in a container, whose /dev/shm has 64 MB.
[ "$(du -sk small/rings | cut -f1)" -le 4300 ] || { du -sk small/rings >&2; fail "a process takes more than is documented"; }
# Fewer rings than threads, which is a loss.
fill 600
expect 0 env ETCH_RING="$work/small/rings" ./threads-O2
rm -f one.etch
expect 0 "$ETCH" record --rings small/rings -o one.etch
expect 0 "$ETCH" info one.etch
grep -q "no ring (\|ring reused (" "$work/out" || { cat "$work/out" >&2; fail "no loss for threads without a ring"; }

# The tmpfs fills up while the program runs: what it has is its own. And while etch reads.
fill 65000
cat >fills.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char block[65536];
    volatile unsigned long sum = 0;
    int fd = open(argv[1], O_WRONLY | O_CREAT, 0600);

    while (write(fd, block, sizeof(block)) > 0)
        ;
    for (int i = 0; i < 3000000; i++)
        sum += i % 3 ? 1 : argc;
    printf("%lu\n", sum);
    return 0;
}
C
"$ETCH" cc --record -g -O2 fills.c -o fills
expect 0 env ETCH_RING="$work/small/rings" ./fills small/rest
rm -f one.etch
expect 0 "$ETCH" record --rings small/rings -o one.etch
expect 0 "$ETCH" decode one.etch --as line --last 100

# A sparse file as an older etch left it, on a full tmpfs: etch reads what is there, and does not die of it.
fill 65000
expect 0 env ETCH_RING="$work/small/rings" ./threads-O2
for file in small/rings/*; do
  truncate -s $((172032 + 100000)) "$file"
  truncate -s 8M "$file"
done
dd if=/dev/zero of=small/rest bs=4k 2>/dev/null || true
rm -f one.etch
expect 0 "$ETCH" record --rings small/rings -o one.etch

# etch record itself, with a /dev/shm that is full.
mount -t tmpfs -o size=1m none /dev/shm
dd if=/dev/zero of=/dev/shm/full bs=1k 2>/dev/null || true
rm -f one.etch
status=0
"$ETCH" record --source soft -o one.etch ./threads-O2 >out 2>err || status=$?
case $status in
0) same out want && grep -q "no rings\|no room" err || { cat err >&2; fail "nothing is said of a full /dev/shm"; } ;;
125) ;; # no folder could be made: the program was not started
*) cat err >&2; fail "a full /dev/shm harmed the program: $status" ;;
esac
umount /dev/shm

# ---- Where the folder is out of reach once the program runs ----
fill 65000
for how in chdir chroot drop close; do
  for folder in "$work/small/rings" small/rings; do
    rm -rf small/rings && mkdir small/rings
    status=0
    ETCH_RING=$folder ./threads-O2 $how >out 2>err || status=$?
    [ $status -ne 3 ] || continue # may not be done here
    [ $status -eq 0 ] || fail "$how: it ended with $status"
    same out want
    rm -f one.etch
    expect 0 "$ETCH" record --rings small/rings -o one.etch
    has "$work/err" "6 threads in 2 processes"
    grep -q "nothing lost" "$work/err" || { cat "$work/err" >&2; fail "$how: something was lost"; }
  done
done

# ---- Rights that the program was given ----
# As another user, if there is one to be: then the kernel says that the program is secure.
rm -rf small/rings && mkdir -m 777 small/rings
chmod 755 "$work" small
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
  for how in setuid setgid capable; do
    cp threads-O2 small/$how
    case $how in
    setuid) chmod 4755 small/$how ;;
    setgid) chmod 2755 small/$how ;;
    *) setcap cap_net_raw+ep small/$how 2>/dev/null || { echo "no file capabilities here"; continue; } ;;
    esac
    ETCH_RING=$work/small/rings ETCH_SYNC=$work/none setpriv --reuid=65534 --regid=65534 --clear-groups ./small/$how >out ||
      fail "a $how program failed"
    same out want
    [ -z "$(ls small/rings)" ] || { ls -l small/rings >&2; fail "a $how program obeys ETCH_RING"; }
  done
  cp threads-O2 small/plain && chmod 755 small/plain
  ETCH_RING=$work/small/rings setpriv --reuid=65534 --regid=65534 --clear-groups ./small/plain >out
  [ -n "$(ls small/rings)" ] || fail "another user's program has no rings, so that the check above means nothing"
  checks=$((checks + 3))
fi
umount small
done_checking
