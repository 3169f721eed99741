#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The program is killed, stopped or sent a signal between fork and exec, or just behind: etch ends as the program does, with its
# status, and never waits for ever. ETCH_ROUNDS: how often, for each signal (40).
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >rounds.py <<'P'
import os, random, signal, subprocess, sys, time

etch, source, rounds, number, own_thread = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == '1'
random.seed(5)
before_exec = 0

def children(pid):
    found = []
    try:
        for task in os.listdir('/proc/%d/task' % pid):
            # The watchdog is a child of the main thread; the program is that of the one that traces.
            if own_thread and int(task) == pid:
                continue
            found += [int(word) for word in open('/proc/%d/task/%s/children' % (pid, task)).read().split()]
    except OSError:
        pass
    return found

for i in range(rounds):
    run = subprocess.Popen([etch, 'record', '--source', source, '--clock', '0', '--no-sync', '-o', 'run.etch', '--', '/bin/true'],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    found = []
    while not found and run.poll() is None and time.monotonic() < until:
        found = children(run.pid)
    if found:
        if i % 3:
            time.sleep(random.random() * 0.002)
        try:
            before_exec += os.readlink('/proc/%d/exe' % found[0]) == os.path.realpath(etch)
            os.kill(found[0], number)
            if number == signal.SIGSTOP:
                time.sleep(random.random() * 0.01)
                os.kill(found[0], signal.SIGCONT)
        except OSError:
            pass
    try:
        said = run.communicate(timeout=60)[1].decode()
    except subprocess.TimeoutExpired:
        state = [open('/proc/%d/stat' % pid).read() for pid in found]
        os.system('kill -9 %d %s' % (run.pid, ' '.join(str(pid) for pid in found)))
        sys.exit('round %d: etch waits for ever, the program is %s' % (i, state))
    if run.returncode not in (0, 128 + number) or (number == signal.SIGSTOP and run.returncode):
        # Under QEMU a program that never began is an error of its own.
        if not (source == 'vpt' and run.returncode == 125 and 'ended before it began' in said):
            sys.exit('round %d: status %d: %s' % (i, run.returncode, said))
print('%d rounds with %s and signal %d, %d of them before exec' % (rounds, source, number, before_exec))
P
for number in 9 15 19; do
  python3 rounds.py "$ETCH" none "${ETCH_ROUNDS:-40}" $number 1 || fail "none, signal $number"
  checks=$((checks + 1))
done
expect 0 "$ETCH" record --source none -o run.etch -- /bin/true # whatever the last round left, it is written over
if has_vpt; then
  python3 rounds.py "$ETCH" vpt "${ETCH_ROUNDS:-12}" 9 0 || fail "vpt"
  checks=$((checks + 1))
fi
expect 125 "$ETCH" record --source none -o none.etch -- ./rounds.py
done_checking
