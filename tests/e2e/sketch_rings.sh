#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that ran with ETCH_RING alone crashed: etch sketch --rings shows how. The failing statement and the stack are those of etch
# record. The program itself ends as it does without a recorder, whatever it does with its signals.
. "$(dirname "$0")/lib.sh"
cd "$work"
ulimit -S -c 0

# until_both FOLDER PROGRAM: runs until two runs failed and two passed
until_both() {
  local failed=0 passed=0
  rm -rf "$1" && mkdir "$1"
  for _ in $(seq 400); do
    if (ETCH_RING=$work/$1 "$2") >/dev/null 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    [ $failed -lt 2 ] || [ $passed -lt 2 ] || return 0
  done
  fail "$2: $failed failed, $passed passed"
}

# ---- The same as with etch record ----
cat >same.py <<'P'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for get in (lambda s: s["headline"], lambda s: s["failing_place"], lambda s: s["failure"]["signal"], lambda s: s["failure"]["code"],
            lambda s: s["failure"]["message"], lambda s: [t["place"] for t in s["steps"] if t["failing"]], lambda s: s["compared"]):
    assert get(a) == get(b), (get(a), get(b))
P
cat >stack.py <<'P'
# The frames in the program, without where it was loaded.
import json, sys
base = path = frames = None
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "program" in r:
        path = r["program"]["exe"]
    if "image" in r and r["image"]["path"] == path and int(r["image"]["prot"]) & 4:
        low = int(r["image"]["start"], 16); high = low + int(r["image"]["size"])
    if "failure" in r:
        frames = [int(f, 16) for f in r["failure"]["threads"][0]["frames"]]
assert frames, "no frames"
print(*[hex(f - low) for f in frames if low <= f < high])
P
for which in "bad-input -O0" "double-free -O2" "member-null -O2" "apache-21285 -O0"; do
  set -- $which
  source=$(ls "$ETCH_SOURCE/tests/corpus/$1"/bug.c*)
  driver=cc
  case $source in *.cpp) driver='c++ -std=c++17' ;; esac
  "$ETCH" $driver --record "$2" -g -w -pthread "$source" -o "$1" -lm || fail "$1 was not built"
  until_both rings "./$1"
  expect 0 "$ETCH" sketch "./$1" --rings rings --json rings.json --html rings.html
  [ -s rings.html ] || fail "no HTML"
  expect 0 "$ETCH" record --rings rings -o one.etch
  has "$work/err" "which died by signal"
  "$ETCH" info --records one.etch >records
  python3 stack.py records >left
  rm -f run*.etch
  for i in $(seq 400); do
    status=0
    "$ETCH" record --source soft -o "run$i.etch" "./$1" >/dev/null 2>&1 || status=$?
    if [ $status -ne 0 ]; then failing=run$i.etch; else passing=run$i.etch; fi
    [ -z "${failing:-}" ] || [ -z "${passing:-}" ] || break
  done
  expect 0 "$ETCH" sketch "./$1" "$failing" "$passing" --json record.json
  python3 same.py rings.json record.json || fail "$which: another sketch than with etch record"
  "$ETCH" info --records "$failing" >records
  python3 stack.py records >recorded
  [ "$(cat left)" = "$(cat recorded)" ] || { cat left recorded >&2; fail "$which: another stack"; }
  unset failing passing
done

# ---- The last word of etch ----
mkdir none
expect 1 "$ETCH" sketch ./bad-input --rings missing
has "$work/err" "cannot open missing"
expect 1 "$ETCH" sketch ./bad-input --rings none
has "$work/err" "no program left rings in none"
expect 1 "$ETCH" sketch ./bad-input --rings rings
has "$work/err" "of other programs, such as $work/apache-21285"
"$ETCH" cc --record -O0 -g -w -DFIXED -pthread "$ETCH_SOURCE/tests/corpus/bad-input/bug.c" -o fixed -lm
rm -rf rings && mkdir rings
for _ in 1 2 3; do ETCH_RING=$work/rings ./fixed >/dev/null; done
expect 1 "$ETCH" sketch ./fixed --rings rings
has "$work/err" "none of the processes in rings failed: 3 passed"
"$ETCH" cc --record -O1 -g -w -DFIXED -pthread "$ETCH_SOURCE/tests/corpus/bad-input/bug.c" -o fixed -lm
expect 1 "$ETCH" sketch ./fixed --rings rings
has "$work/err" "ran another build of ./fixed"

# ---- Whatever the program does with its signals, its end is its own ----
cat >ends.py <<'P'
import os, resource, shutil, signal, subprocess, sys
programs, modes = sys.argv[1].split(), sys.argv[2].split()
def run(program, mode, environment):
    # Core files of two modes: the core flag of the status must be the same too.
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    limit = most if mode in ("segv", "abort") else 0
    p = subprocess.Popen([program, mode], stdout=subprocess.PIPE, env=environment, cwd="cores",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (limit, most)))
    out = b""
    while mode == "outside" and b"ready" not in out:
        out += os.read(p.stdout.fileno(), 100)
    if mode == "outside":
        p.send_signal(signal.SIGABRT)
    out += p.stdout.read()
    return os.wait4(p.pid, 0)[1], out
os.mkdir("cores")
bad = 0
for program in programs:
    for mode in modes:
        shutil.rmtree("ends", ignore_errors=True)
        os.mkdir("ends")
        without = {k: v for k, v in os.environ.items() if not k.startswith("ETCH_RING")}
        a, b = run(program, mode, without), run(program, mode, dict(without, ETCH_RING=os.path.abspath("ends")))
        assert os.listdir("ends"), "nothing was recorded"
        if a != b:
            bad += 1
            print(program, mode, "without:", a, "with:", b)
sys.exit(bad != 0)
P
modes="segv gp bus ill trap fpe abort raise-segv raise-abrt raise-sys kill-bus term own again ignored blocked pending chain chain-abort
chain-raw restored jump stack on-stack deep thread-segv thread-abort thread-deep fork vfork fork-exit outside strict filter exit none"
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g -w -pthread "$ETCH_SOURCE/tests/programs/soft/deaths.c" -o deaths$level
done
python3 ends.py "$work/deaths-O0 $work/deaths-O2" "$modes" >ends.out 2>&1 || { cat ends.out >&2; fail "a program ends otherwise than without"; }
checks=$((checks + 72))

# ---- What the rings say of each end ----
# ended MODE WORDS [VARIABLE]: of the newest process that failed
ended() {
  rm -rf rings && mkdir rings
  env ETCH_RING="$work/rings" ${3:+"$3"} ./deaths-O0 "$1" >/dev/null 2>&1 || true
  expect 0 "$ETCH" record --rings rings -o one.etch
  has "$work/err" "$2"
}
ended segv "died by signal 11"
"$ETCH" decode one.etch --as line >lines
line=$(grep -n '@fault' "$ETCH_SOURCE/tests/programs/soft/deaths.c" | cut -d: -f1)
[ "$(tail -n 1 lines)" = "deaths.c:$line fault" ] || fail "the last line is $(tail -n 1 lines)"
"$ETCH" info one.etch >told
has told "deaths-O0 segv"
ended abort "died by signal 6"
ended thread-segv "died by signal 11"
ended fork "died by signal 11"
ended exit "exited with status 42"
ended none "exited with status 0"
ended term "ended without a word"
ended deep "died by signal 11"
ended filter "ended without a word"
ended again "died by signal 11"
ended segv "ended without a word" ETCH_RING_SIGNALS=0
expect 1 "$ETCH" sketch ./deaths-O0 --rings rings
has "$work/err" "1 ended without a word"
# A file that was replaced since is not taken for the one that ran.
ended segv "died by signal 11"
cp deaths-O0 kept && cp deaths-O2 deaths-O0.new && mv deaths-O0.new deaths-O0
expect 1 "$ETCH" sketch ./deaths-O0 --rings rings
has "$work/err" "another build"
expect 0 "$ETCH" sketch ./kept --rings rings
has "$work/out" "SIGSEGV in fault()"
mv kept deaths-O0
# Secrets of the command line are hidden, as in any bundle.
rm -rf rings && mkdir rings
ETCH_RING=$work/rings ./deaths-O0 segv --password=hunter2 >/dev/null 2>&1 || true
expect 0 "$ETCH" record --rings rings -o one.etch
! grep -q hunter2 one.etch && ! "$ETCH" info --records one.etch | grep -q hunter2 || fail "the bundle has a secret"
[ "$(stat -c %a rings/*)" = 600 ] || fail "others can read the rings"

# ---- Power cut: a copy of the file at any moment is readable ----
cat >busy.c <<'C'
#include <pthread.h>
static volatile unsigned long sum;
__attribute__((noinline)) static void step(unsigned long i)
{
    if (i % 3)
        sum += i;
    else
        sum ^= i;
}
static void *run(void *arg)
{
    for (unsigned long i = 0;; i++)
        step(i);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    run(0);
}
C
"$ETCH" cc --record -O2 -g -pthread busy.c -o busy
rm -rf rings && mkdir rings
ETCH_RING=$work/rings ETCH_RING_KB=16 ./busy &
busy=$!
until [ -n "$(ls rings)" ] && "$ETCH" record --rings rings -o one.etch 2>err && grep -q "2 threads" err; do :; done
for i in $(seq 10); do
  rm -rf copy one.etch && mkdir copy
  cp rings/* copy/
  expect 0 "$ETCH" record --rings copy -o one.etch
  has "$work/err" "which runs, or may"
  expect 0 "$ETCH" decode one.etch --as line --last 20
  has "$work/out" "busy.c:"
done
kill -9 $busy
wait $busy 2>/dev/null || true
expect 0 "$ETCH" record --rings rings -o one.etch
has "$work/err" "ended without a word"

# ---- In a PID namespace, with a small tmpfs ----
cat >inside.sh <<'S'
mount -t tmpfs -o size=16m none small || exit 77
for how in segv none segv none; do ETCH_RING=$PWD/small ./deaths-O2 $how >/dev/null 2>&1; done
cp small/* away/ && umount small
S
rm -rf small away && mkdir small away
status=0
unshare -rpfm --mount-proc bash inside.sh 2>/dev/null || status=$?
if [ $status -eq 0 ]; then
  expect 0 "$ETCH" sketch ./deaths-O2 --rings away
  has "$work/out" "SIGSEGV in fault()"
  has "$work/out" "2 failing, 2 passing runs"
else
  echo "no PID and mount namespaces here: not tried"
fi
echo "$checks checks"
