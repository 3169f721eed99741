#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Cores: etch sketch --core gives the failing statement and the stacks that a recording gives; etch core keeps cores as the kernel's
# handler. The kernel makes the cores here, or gdb does where the machine's core_pattern is not a plain name.
. "$(dirname "$0")/lib.sh"
pattern_lock=${TMPDIR:-/tmp}/etch-core-pattern.lock # of all tests that need or change core_pattern
cd "$work"
mkdir tmp
export TMPDIR=$work/tmp

cat >crash.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    int *done;
};
struct job job;
static pthread_barrier_t barrier;

__attribute__((noinline)) static void finish(struct job *j, int n)
{
    *j->done = n;
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void work(int n)
{
    finish(&job, n);
    __asm__ volatile("" ::: "memory");
}

static void *wait_for_it(void *unused)
{
    pthread_barrier_wait(&barrier);
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, wait_for_it, NULL);
    pthread_barrier_wait(&barrier);
    if (argc > 1 && strcmp(argv[1], "abort") == 0)
        abort();
    if (argc > 1 && strcmp(argv[1], "quit") == 0)
        for (;;)
            pause();
    work(argc);
    return 0;
}
END
cat >crash.cc <<'END'
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Queue {
    std::vector<int> *items = nullptr;
    __attribute__((noinline)) int sum() const
    {
        int all = 0;
        for (int i : *items)
            all += i;
        return all;
    }
};
static std::atomic<bool> ready;

int main(int argc, char **)
{
    Queue queue;
    std::thread worker([&queue, argc] {
        while (!ready)
            std::this_thread::yield();
        if (argc > 1)
            throw std::runtime_error("out of jobs");
        ready = queue.sum() == 0;
    });
    ready = true;
    worker.join();
}
END

kernel=no # whether the kernel makes the cores

# core_by PROG [ARG...]: its core, in $work/core; false if this machine makes none
core_by() {
  local pattern
  pattern=$(cat /proc/sys/kernel/core_pattern)
  rm -rf "$work/cores" "$work/core" && mkdir "$work/cores"
  case $pattern in
  '|'* | */*) ;;
  *)
    (cd "$work/cores" && ulimit -c unlimited && exec "$@") >/dev/null 2>&1 || true
    find "$work/cores" -type f -size +0 -exec mv {} "$work/core" \;
    [ ! -s "$work/core" ] || kernel=yes
    ;;
  esac
  [ -s "$work/core" ] || ! command -v gdb >/dev/null ||
    gdb -batch -nx -ex 'set debuginfod enabled off' -ex run -ex "generate-core-file $work/core" --args "$@" >/dev/null 2>&1 </dev/null || true
  [ -s "$work/core" ]
}

# same_sketch ONE OTHER: two sketches in JSON have the same failure and the same statements
same_sketch() {
  python3 - "$1" "$2" <<'END'
import json, sys
def of(name):
    d = json.load(open(name))
    return (d['headline'], d['failing_place'], d['failure']['signal'], d['failure']['code'], d['failure']['fault_address'],
            d['failure']['message'], d['source'],
            [(s['place'], s['thread'], s.get('failing'), s.get('depth')) for s in d['steps']], len(d['threads']))
one, other = of(sys.argv[1]), of(sys.argv[2])
if one != other:
    sys.exit('%s\n%s' % (one, other))
END
}

"$ETCH" cc -g -O0 crash.c -o c0 -pthread &
"$ETCH" cc -g -O2 crash.c -o c2 -pthread
"$ETCH" c++ -g -O0 -std=c++17 crash.cc -o cxx0 -pthread &
"$ETCH" c++ -g -O2 -std=c++17 crash.cc -o cxx2 -pthread
wait
core_by "$work/c0" || skip "no core files here: core_pattern is '$(cat /proc/sys/kernel/core_pattern)', and there is no gdb"

for what in c0 c2 cxx0 cxx2 'c0 abort'; do
  set -- $what
  core_by "$work/$1" "${@:2}" || fail "no core of $what"
  got=0
  "$ETCH" record --source none -o none.etch -- "./$1" "${@:2}" >/dev/null 2>&1 || got=$?
  expect 0 "$ETCH" sketch "$1" none.etch --json none.json
  expect 0 "$ETCH" sketch "$1" --core core --json core.json
  same_sketch none.json core.json || fail "$what: the core's sketch is another"
  grep -q 'no control flow was recorded' out || fail "$what: the sketch does not say that there is no control flow"
  checks=$((checks + 1))
done

# ---- A hang, and a debugger's core ----
if [ "$kernel" = yes ]; then
  (cd cores && ulimit -c unlimited && exec "$work/c0" quit) &
  pid=$!
  until grep -q '^Threads:.2' /proc/$pid/status; do sleep 0.05; done
  until [ "$(awk '/^State/ { print $2 }' /proc/$pid/task/*/status | sort -u)" = S ]; do sleep 0.05; done
  kill -QUIT $pid
  wait $pid 2>/dev/null || true
  mv cores/core* hang.core
  expect 0 "$ETCH" sketch c0 --core hang.core
  has out 'hang'
  has out 'wait_for_it()'
fi
if command -v gdb >/dev/null; then
  gdb -batch -nx -ex 'set debuginfod enabled off' -ex run -ex "generate-core-file $work/gdb.core" --args "$work/c2" >/dev/null 2>&1 </dev/null || true
fi
if [ -s gdb.core ]; then # it leaves out most code
  expect 0 "$ETCH" sketch c2 --core gdb.core
  has out 'SIGSEGV in finish()  crash.c:14'
  has out 'work()  crash.c:20'
  has out 'wait_for_it()'
fi

# ---- Cores that are not whole, or not cores ----
core_by "$work/c0" || fail "no core"
size=$(stat -c %s core)
for share in 30 90; do
  head -c $((size * share / 100)) core >cut.core
  expect 0 "$ETCH" sketch c0 --core cut.core --json cut.json
  has out 'SIGSEGV in finish()  crash.c:14'
  has out 'the core was cut'
  ! grep -q 'Nothing was lost' out || fail "a cut core is said to be whole"
done
head -c 900 core >cut.core
expect 1 "$ETCH" sketch c0 --core cut.core
has err 'ends before its first thread'
expect 1 "$ETCH" sketch c0 --core crash.c
has err 'crash.c is not a core file'
expect 1 "$ETCH" sketch c0 --core c0
has err 'not a core file'
expect 1 "$ETCH" sketch c0 --core missing.core
has err 'No such file'
expect 1 "$ETCH" sketch c0 --core "$work"
gzip -c crash.c >packed.core
expect 1 "$ETCH" sketch c0 --core packed.core
has err 'gzip -d'
expect 1 "$ETCH" sketch c2 --core core
has err "is a core of $work/c0, which is not c2"
chmod 0600 core
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  chmod 0755 "$work"
  expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$ETCH" sketch "$work/c0" --core "$work/core"
  has err 'Permission denied'
fi

# ---- coredumpctl: the plumbing, with a fake one ----
mkdir bin
cat >bin/coredumpctl <<'END'
#!/bin/sh
echo "$*" >"$FAKE/asked"
case $* in *4711*) echo 'No match found.' >&2; exit 1 ;; esac
for word; do case $word in --output=*) cp "$FAKE/core" "${word#--output=}" ;; esac; done
END
chmod +x bin/coredumpctl
expect 0 env FAKE="$work" PATH="$work/bin:$PATH" "$ETCH" sketch c0 --coredump latest
has out 'SIGSEGV in finish()  crash.c:14'
has asked "$work/c0"
expect 1 env FAKE="$work" PATH="$work/bin:$PATH" "$ETCH" sketch c0 --coredump 4711
has err 'No match found.'
expect 2 "$ETCH" sketch c0 --coredump never
rm bin/coredumpctl
if ! command -v coredumpctl >/dev/null; then
  expect 1 "$ETCH" sketch c0 --coredump latest
  has err 'install systemd-coredump'
fi

# ---- etch core: the handler, fed by hand ----
keep() { "$ETCH" core --to "$work/kept" "$@"; }
keep 999999 7 11 1700000001 '!opt!prog' <core || fail "the core was not kept"
cmp core kept/unknown.999999.1700000001.core || fail "the kept core is another"
[ "$(stat -c %a kept kept/*.core kept/*.etch | sort -u | tr '\n' ' ')" = '600 700 ' ] || fail "the cores are for others, too"
expect 0 keep --list
has out 'pid 7 (999999 outside of its container)  SIGSEGV'
expect 0 "$ETCH" sketch c0 --core kept/unknown.999999.1700000001.core
for i in 2 3; do keep --keep 2 999999 7 11 170000000$i <core; done
[ "$(ls kept/*.core | wc -l) $(ls kept/*.etch | wc -l)" = '2 2' ] || fail "--keep 2 kept $(ls kept)"
keep --max-size 64K 999999 7 11 1700000004 <core
[ "$(stat -c %s kept/unknown.999999.1700000004.core)" -eq 65536 ] || fail "--max-size is not kept"
expect 0 "$ETCH" info kept/unknown.999999.1700000004.etch
has out 'limit'
expect 0 "$ETCH" sketch c0 --core kept/unknown.999999.1700000004.core
has out 'the core was cut'

# The former handler gets the core whatever happens to etch.
cat >then.sh <<'END'
#!/bin/sh
cat >"$1"; shift; echo "$@" >args
END
chmod +x then.sh
keep 999999 7 11 1700000005 --then "$work/then.sh" "$work/chained" -p 7 -s 11 <core
cmp core chained || fail "the former handler got something else"
[ "$(cat args)" = '-p 7 -s 11' ] || fail "the former handler got the arguments $(cat args)"
cmp core kept/unknown.999999.1700000005.core || fail "with a former handler the kept core is another"
rm chained
keep 999999 7 11 1700000006 --then "$work/then.sh $work/chained -x" <core
cmp core chained || fail "a former handler in one word gets nothing"
chmod 0777 kept
for wrong in '999999 7 11 1700000007' 'what' '--what' '--keep none 1 2 3 4'; do
  rm -f chained
  keep $wrong --then "$work/then.sh" "$work/chained" <core 2>/dev/null || true
  cmp core chained || fail "'$wrong': the former handler got nothing"
  checks=$((checks + 1))
done
expect 1 keep 999999 7 11 1700000007
has err 'not a folder of this user alone'
chmod 0700 kept
keep 999999 7 11 1700000008 --then "$work/missing" <core || fail "a missing handler hinders etch"
cmp core kept/unknown.999999.1700000008.core || fail "with a missing handler the core is not kept"
cat >dies.sh <<'END'
#!/bin/sh
head -c 1000 >/dev/null; kill -KILL $$
END
chmod +x dies.sh
keep 999999 7 11 1700000009 --then "$work/dies.sh" <core || fail "a killed handler hinders etch"
cmp core kept/unknown.999999.1700000009.core || fail "with a killed handler the core is not kept"

# A full disk: the kept core is cut, and the former handler has all of it.
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
  mkdir small
  unshare -m --propagation private bash -c 'mount -t tmpfs -o size=160k none small || exit 77
    "$ETCH" core --to "$PWD/small/kept" 999999 7 11 1700000010 --then ./then.sh "$PWD/chained" <core
    cp small/kept/*.core full.core; cp small/kept/*.etch full.etch' 2>/dev/null || [ $? -eq 77 ] || fail "the full disk"
fi
if [ -e full.core ]; then
  cmp core chained || fail "on a full disk the former handler gets less"
  [ "$(stat -c %s full.core)" -lt "$size" ] || fail "the disk was not full"
  expect 0 "$ETCH" info full.etch
  has out 'no space'
fi

# ---- etch core --install, on a file in core_pattern's place ----
export ETCH_CORE_PATTERN_FILE=$work/pattern
installs() { "$ETCH" core "$@" --to "$work/kept"; }
echo core >pattern
expect 0 installs --install --check
[ "$(cat pattern)" = core ] || fail "--check changes the pattern"
if [ "$(readlink -f "$ETCH" | wc -c)" -lt 60 ]; then
  expect 0 installs --install
  has pattern "|$(readlink -f "$ETCH") core --to $work/kept %P %p %s %t %E"
  expect 1 installs --install
  has err 'handles cores already'
  expect 0 installs --uninstall
  [ "$(cat pattern)" = core ] || fail "the former pattern is not back"
  echo '|/h %p' >pattern
  expect 0 installs --install
  has pattern '%E --then /h %p'
  expect 0 installs --uninstall
  [ "$(cat pattern)" = '|/h %p' ] || fail "the former handler is not back"
fi
expect 1 installs --uninstall
has err 'left as it is'
printf '|/usr/lib/handler %080d\n' 1 >pattern
expect 1 installs --install
has err 'the kernel takes 127'
unset ETCH_CORE_PATTERN_FILE
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$ETCH" core --install
  grep -qE 'only root|container' err || fail "no word about root"
fi
if unshare -pf true 2>/dev/null; then
  expect 1 unshare -pf "$ETCH" core --install
  has err 'core_pattern belongs to the host'
fi

# ---- Rings of the same process ----
cat >own.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int *target, good;

/* A handler that goes past the C library: the rings do not say that the process failed. */
static void own(int number)
{
    long action[4] = {0};

    syscall(SYS_rt_sigaction, number, action, NULL, 8);
}

__attribute__((noinline)) static void choose(int n)
{
    if (n % 2)
        target = &good;
    else
        target = NULL;
}

__attribute__((noinline)) static void use(int n)
{
    *target = n;
}

int main(int argc, char **argv)
{
    signal(SIGSEGV, own);
    choose(atoi(argv[1]));
    use(argc);
    return 0;
}
END
"$ETCH" cc --record -g -O2 own.c -o own
mkdir rings
core_by ./own 2 2>/dev/null || core_by "$work/own" 2
mv core elsewhere.core
export ETCH_RING=$work/rings
for i in 1 3 5; do ./own $i; done
core_by "$work/own" 2 || fail "no core of own"
unset ETCH_RING
expect 1 "$ETCH" sketch own --rings rings
has err 'none of the processes'
expect 0 "$ETCH" sketch own --rings rings --core core
has out '1 failing, 3 passing runs - source soft'
has out 'SIGSEGV in use()  own.c:26'
has out 'choose own.c:18'
expect 1 "$ETCH" sketch own --rings rings --core elsewhere.core
has err 'no process of the program with that number'

# ---- Values backwards from the core, along the control flow of the rings ----
cat >sums.c <<'END'
#include <stdlib.h>
int table[16];
int *volatile last;
int total;

__attribute__((noinline)) static int scale(int x, int f)
{
    int y = x * f;
    total += y;
    return y;
}

__attribute__((noinline)) static void fill(int n)
{
    for (int i = 0; i < n; i++)
        table[i & 15] = scale(i, n);
}

__attribute__((noinline)) static void use(int i)
{
    int *p = &table[i];
    total -= i;
    if (total > 100)
        p = NULL;
    *p = total;
    last = p;
}

int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    fill(n);
    use(n);
    return argc > 9;
}
END
"$ETCH" cc --record -g -O2 sums.c -o sums
mkdir sums-rings
export ETCH_RING=$work/sums-rings
./sums 2
core_by "$work/sums" 9 || fail "no core of sums"
unset ETCH_RING
expect 0 "$ETCH" sketch sums --rings sums-rings --core core --json sums.json --html sums.html
has out 'W 315 ~' # 9 * (0 + ... + 8) - 9
has out '~ is a value that was recovered'
python3 - sums.json <<'END' || fail "JSON does not say how a value is known"
import json, sys
values = [v for s in json.load(open(sys.argv[1]))['steps'] for v in s['values']]
assert any(v.get('recovered') and int(v['value'], 16) == 315 and v['evidence'].startswith('recovered from the core') for v in values), values
END
has sums.html 'recovered from the core'

# ---- The kernel's own handler ----
# Changes core_pattern for a moment, where this is root of the machine itself.
# The kernel looks for the handler from the root of the first process. In a chroot no mount is at /.
if [ "$(id -u)" -eq 0 ] && [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] && grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* / ' /proc/self/mountinfo && [ -w /proc/sys/kernel/core_pattern ] &&
  "$ETCH" core --install --check --to "$work/k" >/dev/null 2>&1; then
  exec 9>"$pattern_lock"
  flock 9
  former=$(cat /proc/sys/kernel/core_pattern)
  trap 'printf %s "$former" >/proc/sys/kernel/core_pattern; rm -rf "$work"' EXIT
  expect 0 "$ETCH" core --install --to "$work/k"
  (ulimit -c 0 && exec ./c0 --password=hunter2) >/dev/null 2>&1 || true
  (ulimit -c 0 && ETCH_RING=$work/rings exec ./own 2) >/dev/null 2>&1 || true
  expect 0 "$ETCH" core --uninstall --to "$work/k"
  [ "$(cat /proc/sys/kernel/core_pattern)" = "$former" ] || fail "core_pattern is not what it was"
  flock -u 9
  for i in $(seq 600); do # the kernel does not wait for its handler
    expect 0 "$ETCH" core --list --to "$work/k"
    ! grep -qF './c0 --password' out || ! grep -qF "rings in $work/rings" out || break
    sleep 0.1
  done
  has out './c0 --password=***'
  has out "rings in $work/rings"
  ! grep -rq hunter2 k/*.etch || fail "a secret is in the bundle about the process"
  expect 0 "$ETCH" sketch c0 --core k/c0.*.core
  has out 'SIGSEGV in finish()  crash.c:14'
  expect 0 "$ETCH" sketch own --core k/own.*.core
  has out '1 failing, 3 passing runs - source soft'
  trap 'rm -rf "$work"' EXIT
fi

[ -z "$(ls tmp)" ] || fail "a temporary folder is left"
done_checking
