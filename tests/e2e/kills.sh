#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL at random moments: etch, the program, or both, with none, soft and vpt. What was recorded before is readable, whole or with
# the loss told; a program whose etch is gone goes on unharmed; no process, no memory and no perf event is left. KILLS: how many
# (60; the long form is 1000). SEED: for the same moments again, as far as the machine allows.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/steps.sh"
own_memory "$@"
cd "$work"
{
  cat <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
C
  step_source
  cat <<'C'
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t end;
static unsigned long turns, waits;
volatile int watched;

static void *run(void *unused)
{
    pthread_mutex_lock(&lock);
    turns++;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void on_end(int number)
{
    end = number;
}

/* Ends with 7 if all its threads ran. */
int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600), sum = 0;
    pthread_t thread;

    signal(SIGTERM, on_end);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 2;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (unsigned long i = 1; !end; i++) {
        sum += step(i);
        seen[1] = i;
        if (i % 5000 == 0 && pthread_create(&thread, NULL, run, NULL) == 0) {
            waits += pthread_join(thread, NULL) == 0;
            watched++;
        }
    }
    return turns == waits && sum >= 0 ? 7 : 1;
}
C
} >count.c
"$ETCH_CC" -O2 -g count.c -o plain -pthread
"$ETCH" cc --record -O2 -g count.c -o recorded -pthread
cat >kills.py <<'P'
import ctypes, glob, os, random, re, signal, struct, subprocess, sys, time

etch, kills, seed, sources = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split()
watch = sys.argv[5:]
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to us
random.seed(seed)
counts = {}
LIMIT = 120

def count(what):
    counts[what] = counts.get(what, 0) + 1

class Failure(Exception):
    pass

def until(condition, what):
    end = time.monotonic() + LIMIT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(what)
        time.sleep(0.002)

def text(path):
    try:
        return open(path).read()
    except OSError:
        return ''

def program_of(pid, source):
    try:
        tasks = os.listdir('/proc/%d/task' % pid)
    except OSError:
        return None
    for task in tasks:
        # The watchdog is a child of the main thread; a traced program is that of the one that traces.
        if source == 'vpt' or int(task) != pid:
            for word in text('/proc/%d/task/%s/children' % (pid, task)).split():
                return int(word)
    return None

def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass

def steps():
    try:
        data = open('seen', 'rb').read(16)
    except OSError:
        return 0, 0
    return struct.unpack('2Q', data) if len(data) == 16 else (0, 0)

def run(*arguments):
    return subprocess.run([etch, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')

def check_last(bundle, tolerance):
    begun, done = steps()
    if done < 200:
        return
    ways = {n: int(m.group(1)) for n, t in enumerate(open('count.c'), 1) for m in [re.search('@([012]) ', t)] if m}
    said = run('decode', bundle, '--as', 'line', '--last', '4000').stdout
    got = [ways[int(n)] for n in re.findall(r'count\.c:(\d+)', said) if int(n) in ways][-105:]
    expected = lambda i: 1 if i % 7 == 3 else 2 if i % 5 == 2 else 0
    if len(got) < 35:
        raise Failure('only %d of %d steps were replayed: %s' % (len(got), done, said[-300:]))
    for last in range(begun, begun - tolerance, -1):
        if all(expected(last - k) == way for k, way in enumerate(reversed(got)) if last - k > 0):
            count('replayed to the last step')
            return
    raise Failure('the last steps are not those that ran: begun %d, done %d, %s' % (begun, done, got[-40:]))

def check_bundle(path, whole):
    if not os.path.exists(path):
        count('no bundle yet')
        return
    if os.path.getsize(path) == 0:
        count('empty bundle')
        return
    said = run('info', path)
    if said.returncode:
        raise Failure('unreadable: ' + said.stdout)
    verified = run('info', '--verify', path)
    if not re.search(r'\b0 damaged', verified.stdout):
        raise Failure('damaged: ' + verified.stdout)
    cut = ', cut' in said.stdout
    if whole and (cut or verified.returncode):
        raise Failure('not whole: ' + said.stdout + verified.stdout)
    count('cut' if cut else 'whole')

def check_rings(source, alive):
    stories = [path for path in glob.glob('/dev/shm/etch-*/run-*/story') if text(path).endswith('/run.etch')]
    for path in stories:
        said = run('record', '--recover=' + os.path.dirname(path), '-o', 'recovered.etch')
        if said.returncode:
            raise Failure('not recovered: ' + said.stdout)
        check_bundle('recovered.etch', True)
        if '"cause":"killed"' not in run('info', '--records', 'recovered.etch').stdout:
            raise Failure('the loss is not told')
        count('recovered ' + source)
        if source == 'soft':
            check_last('recovered.etch', 3)
    return stories

def check_left():
    while True:  # what is ours must end by itself
        try:
            until(lambda: os.waitpid(-1, os.WNOHANG)[0], 'a process is left: ' + ' '.join(
                text('/proc/%s/stat' % word)[:60] for word in text('/proc/self/task/%d/children' % os.getpid()).split()))
        except ChildProcessError:
            break
    # What no story is in was never begun; the next etch removes it.
    run('record', '--source', 'soft', '--clock', '0', '-o', 'next.etch', '--', './recorded', '/nowhere/seen')
    left = glob.glob('/dev/shm/etch-*/*')
    if left:
        raise Failure('left in memory: %s' % left)

def check_program(pid):
    until(lambda: steps()[1] > 0, 'the program did not go on')
    before = steps()[1]
    until(lambda: steps()[1] > before, 'the program stands still: ' + text('/proc/%d/stat' % pid)[:60])
    if 'TracerPid:\t0' not in text('/proc/%d/status' % pid):
        raise Failure('still traced')
    for name in os.listdir('/proc/%d/fd' % pid):
        try:
            open_file = os.readlink('/proc/%d/fd/%s' % (pid, name))
        except OSError:
            continue  # closed by now
        if 'perf_event' in open_file:
            raise Failure('a perf event is left')
    os.kill(pid, signal.SIGTERM)
    status = until(lambda: [s for p, s in [os.waitpid(pid, os.WNOHANG)] if p], 'the program does not end')[0]
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != 7:
        raise Failure('the program was harmed: status %#x' % status)
    count('went on unharmed')

def one(i):
    source = sources[i % len(sources)]
    victim = ('etch', 'program', 'both')[i // len(sources) % 3]
    for name in ('seen', 'run.etch', 'recovered.etch'):
        if os.path.exists(name):
            os.unlink(name)
    watches = watch if source == 'none' and i % 2 else []
    etch_run = subprocess.Popen([etch, 'record', '--source', source, '--clock', '0', *watches, '-o', 'run.etch', '--',
                                 './recorded' if source == 'soft' else './plain', 'seen'],
                                stdout=subprocess.DEVNULL, stderr=open('said', 'w'))
    time.sleep(random.random() ** 2 * (0.6 if source == 'vpt' else 0.25))
    if victim == 'program':
        pid = until(lambda: program_of(etch_run.pid, source) or etch_run.poll() is not None, 'no program')
        kill(pid)
        until(lambda: etch_run.poll() is not None, 'etch waits for ever')
        if etch_run.returncode != 137 and not (source == 'vpt' and 'ended before it began' in text('said')):
            raise Failure('status %d: %s' % (etch_run.returncode, text('said')))
        check_bundle('run.etch', etch_run.returncode == 137)
        if source == 'soft':
            check_last('run.etch', 3)
        count('killed the program')
    else:
        pid = program_of(etch_run.pid, source)
        both = [etch_run.pid] + ([pid] if victim == 'both' and pid else [])
        random.shuffle(both)
        for each in both:
            kill(each)
        etch_run.wait()
        alive = victim == 'etch' and pid
        if alive:
            check_program(pid)
        # It may have been made just before etch died.
        for word in text('/proc/self/task/%d/children' % os.getpid()).split():
            kill(int(word))
        until(lambda: not [w for w in text('/proc/self/task/%d/children' % os.getpid()).split()
                           if text('/proc/%s/stat' % w).rsplit(')')[-1].split()[:1] != ['Z']], 'a process is left')
        check_bundle('run.etch', False)
        check_rings(source, alive)
        count('killed ' + victim)
    check_left()
    return source, victim

for i in range(kills):
    try:
        one(i)
    except Failure as failure:
        sys.exit('kill %d of %d (seed %d, %s, %s): %s\nsaid: %s' %
                 (i, kills, seed, sources[i % len(sources)], ('etch', 'program', 'both')[i // len(sources) % 3], failure, text('said')))
print('%d kills: ' % kills + ', '.join('%s %d' % (k, v) for k, v in sorted(counts.items())))
P
sources="none soft"
! has_vpt || sources="$sources vpt"
watch=
! has_watchpoints || watch="--watch watched"
# shellcheck disable=SC2086
python3 kills.py "$ETCH" "${KILLS:-60}" "${SEED:-$RANDOM}" "$sources" $watch || fail "see above"
checks=$((checks + ${KILLS:-60}))
done_checking
