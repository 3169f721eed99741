#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A recorded program is as without etch: what it prints and sees, its status, signals, job control. Where it cannot be,
# or may not be, etch says so and nothing is left behind.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs/native
for p in self patient tracer breaker stray deny counter; do
  "$ETCH_CC" -O1 -g -pthread "$programs/$p.c" -o "$work/$p"
done
"$ETCH_CC" -O1 -static "$programs/self.c" -o "$work/self-static" 2>/dev/null || true
cd "$work"
record=("$ETCH" record --source none --clock 0 -o "$work/run.etch")

# same NAME COMMAND...: standard output and error, status
same_run() {
  local a=0 b=0
  printf 'one\ntwo\n' | "$@" >plain.out 2>plain.err || a=$?
  printf 'one\ntwo\n' | "${record[@]}" -- "$@" >etch.out 2>etch.err || b=$?
  [ "$a" -eq "$b" ] || fail "$*: status $b, without etch $a"
  sed -i '/^env _=/d' plain.out etch.out # the shell's own
  same plain.out etch.out
  grep -v '^etch record: ' etch.err >etch.own || true
  same plain.err etch.own
  "$ETCH" info --verify "$work/run.etch" >/dev/null || fail "the bundle is not whole"
}
same_run ./self a 'b c' ''
[ -x self-static ] && { same_run ./self-static x; has etch.err "is linked statically"; }
(
  export LD_PRELOAD=libm.so.6 SOME=thing
  same_run ./self
)
( # ignored and blocked signals are handed down
  trap '' USR2 PIPE CHLD
  same_run ./self
)
same_run sh -c 'kill -TERM $$'
same_run sh -c 'exec ./self from exec'
same_run sh -c './self child; echo $?; exit 3'
expect 125 "${record[@]}" ./nosuch
has "$work/err" "cannot run ./nosuch"

# A signal for etch reaches the program once; one for the group, once as well.
for to in "" "-"; do
  rm -f patient.out over
  setsid "${record[@]}" ./patient over 1 >patient.out 2>patient.err &
  pid=$!
  until grep -qs ready patient.out; do sleep 0.02; done
  kill -TERM -- "$to$pid" # after setsid the shell's child leads its group
  sleep 1 # time for a second one, which would be wrong
  : >over
  status=0
  wait $pid || status=$?
  [ $status -eq 5 ] || fail "status $status after TERM to '$to'"
  has patient.out "signals 1"
done

# Joining: the program goes on when etch leaves, and accesses were seen.
rm -f patient.out over
./patient over >patient.out &
target=$!
until grep -qs ready patient.out; do sleep 0.02; done
watch=()
"$ETCH" doctor --json | grep -q '"delivered": true' && watch=(--watch ticks)
"${record[@]}" --pid $target "${watch[@]}" 2>join.err &
etch=$!
until grep -q "TracerPid:.[1-9]" /proc/$target/status; do sleep 0.02; done
sleep 0.6 # so many accesses
expect 125 "$ETCH" record -o "$work/second.etch" --pid $target
has "$work/err" "traces it already"
kill -INT $etch
wait $etch || fail "joining ended with $?"
has join.err "the program goes on"
: >over
status=0
wait $target || status=$?
[ $status -eq 5 ] || fail "the joined program ended with $status"
"$ETCH" info --verify "$work/run.etch" >/dev/null || fail "the joined bundle is not whole"
if [ ${#watch[@]} -gt 0 ]; then
  hits=$("$ETCH_BUILD/tests/accesses" "$work/run.etch" | grep -c 'tick+')
  [ "$hits" -gt 100 ] || fail "only $hits accesses were seen"
fi
expect 125 "$ETCH" record -o "$work/second.etch" --pid 4194304
has "$work/err" "there is no process"

# A program that uses ptrace itself.
expect 125 "${record[@]}" ./tracer
has "$work/err" "uses ptrace itself"
expect 0 "${record[@]}" --allow-ptrace ./tracer

# A program that sets hardware breakpoints itself: not watched, recorded otherwise, and then as without etch.
if "$ETCH" doctor --json | grep -q '"delivered": true'; then
  expect 125 "${record[@]}" --watch 'watched[0]' ./breaker
  has "$work/err" "hardware breakpoints, itself"
  [ ! -s "$work/out" ] || fail "the program ran"
  ./breaker >breaker.out
  expect 0 "${record[@]}" ./breaker
  same "$work/out" breaker.out
  expect 0 "${record[@]}" --allow-breakpoints --watch 'watched[0]' ./breaker
fi

# A debug trap that came without its cause: kept from a program that is watched, and said; one of the program's own is not.
if "$ETCH" doctor --json | grep -q '"delivered": true'; then
  expect 0 "${record[@]}" --watch watched ./stray
  has "$work/err" "without its cause"
  expect 133 "${record[@]}" --watch watched ./stray own
fi
expect 133 "${record[@]}" ./stray
expect 133 ./stray

# Without permission: an error with a way out, the program not started or left running.
ASAN_OPTIONS=detect_leaks=0 expect 125 ./deny 101 "${record[@]}" ./patient over
has "$work/err" "try: "
has "$work/err" "ptrace"
[ ! -s "$work/out" ] || fail "the program ran"
expect 125 ./deny 298 "${record[@]}" --watch counter ./counter 1
has "$work/err" "perf_event_open"
[ ! -s "$work/out" ] || fail "the program ran"
expect 0 ./deny 298 "${record[@]}" ./counter 1
rm -f patient.out over
./patient over >patient.out &
target=$!
until grep -qs ready patient.out; do sleep 0.02; done
expect 125 ./deny 298 "${record[@]}" --pid $target --watch ticks
: >over
status=0
wait $target || status=$?
[ $status -eq 5 ] || fail "the program was harmed by a refused watch: $status"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  chmod 777 "$work"
  chmod 755 patient
  cp "$ETCH" "$work/etch"
  rm -f patient.out over
  ./patient over >patient.out &
  target=$!
  until grep -qs ready patient.out; do sleep 0.02; done
  expect 125 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$work/etch" record -o "$work/un.etch" --pid $target
  has "$work/err" "try: "
  : >over
  status=0
  wait $target || status=$?
  [ $status -eq 5 ] || fail "the program was harmed by one who may not: $status"
fi

# Ctrl-Z on a terminal stops both, fg goes on.
rm -f over
python3 - "${record[@]}" ./patient over <<'PY' || fail "job control"
import os, pty, signal, sys, time
# A shell in small: a session with a terminal, a job in the foreground. (A job without a parent in its session is not
# stopped by the terminal.)
report, say = os.pipe()
shell, tty = pty.fork()
state = lambda p: open(f"/proc/{p}/stat").read().rsplit(")")[1].split()[0]
if shell == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])
    def check():
        for turn in range(8):
            got, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                return f"not stopped: {status}"
            children = [c for t in os.listdir(f"/proc/{job}/task") for c in open(f"/proc/{job}/task/{t}/children").read().split()]
            child = [int(c) for c in children if open(f"/proc/{c}/comm").read() != "etch-watchdog\n"][0]
            if state(child) not in "tT":
                return f"the program is {state(child)} while etch is stopped"
            time.sleep(0.8 if turn < 2 else 0) # longer than the watchdog waits for an etch that somebody else has stopped
            if state(child) not in "tT":
                return f"the program is {state(child)} while etch is stopped for long"
            if turn == 1: # etch alone passes it on
                os.kill(job, signal.SIGCONT)
            else:
                os.killpg(job, signal.SIGCONT)
            for _ in range(200 if turn < 2 else 0): # later the next Ctrl-Z comes at once, and is not lost
                if state(child) in "RS":
                    break
                time.sleep(0.05)
            else:
                if turn < 2:
                    return f"the program is {state(child)} after SIGCONT"
            os.write(say, b"c")
        open("over", "w").close()
        got, status = os.waitpid(job, 0)
        return "good" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 5 else f"ended with {status}"
    try:
        result = check()
    except BaseException as e:
        result = repr(e)
    os.write(say, b"=" + result.encode())
    os._exit(0)
os.close(say)
seen = b""
while b"ready" not in seen:
    seen += os.read(tty, 1000)
for turn in range(8):
    os.write(tty, b"\x1a")
    got = os.read(report, 1) # no more: the result may follow at once
    if got != b"c":
        sys.exit(got + os.read(report, 1000))
got = os.read(report, 1000)
assert got == b"=good", got
PY
checks=$((checks + 1))
done_checking
