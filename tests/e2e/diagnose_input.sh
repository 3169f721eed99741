#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Input that is not what it should be: each gets the best honest answer, and says what to do.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=120
cd "$work"
cp "$ETCH_SOURCE"/tests/programs/diagnose/*.[ch] .
"$ETCH" cc $recorder -g -O0 caught.c -o prog
expect 0 "$ETCH" diagnose --no-lab --runs 4 ./prog
store=$(echo .etch/prog-*)
failing="$store/000001.etch $store/000003.etch"
passing="$store/000002.etch $store/000004.etch"
cp "$store/000001.etch" fail.etch

# Bundles of other builds, and of other programs: left out, and said; no bundle of this build: refused.
sed 's/total = 0/total = 0 + 0/' caught.c >other.c
"$ETCH" cc $recorder -g -O0 -DOTHER other.c -o other
ETCH_RUN=1 "$ETCH" record -o other.etch ./other >/dev/null 2>&1 || true
expect 0 "$ETCH" sketch ./prog $failing $passing other.etch
has out "1 recording is of another build of the program, or of another program: left out"
has out "2 failing, 2 passing runs"
expect 1 "$ETCH" sketch ./prog other.etch
has err "none of the 1 recordings is of this build of ./prog"

# Only passing runs; only failing ones; one failing run; one cut short; one that is damaged; none.
expect 1 "$ETCH" sketch ./prog $passing
has err "none of the 2 runs failed"
expect 0 "$ETCH" sketch ./prog $failing
has out "Without a passing run to compare with, no cause is named."
expect 0 "$ETCH" sketch ./prog fail.etch
has out "one failure, no comparison yet"
head -c "$(($(stat -c %s fail.etch) / 2))" fail.etch >cut.etch
expect 0 "$ETCH" sketch ./prog $failing cut.etch
has out "1 recording ends before the run did"
head -c 3 fail.etch >stub.etch
expect 1 "$ETCH" sketch ./prog $failing stub.etch
has err "stub.etch"
expect 1 "$ETCH" sketch ./prog caught.c
has err "caught.c"
expect 1 "$ETCH" sketch ./prog nothing.etch
has err "nothing.etch"
expect 1 "$ETCH" sketch ./no-such-program fail.etch
has err "no-such-program"
expect 2 "$ETCH" sketch ./prog

# No debug information, no bitcode: said before anything runs.
"$ETCH_CC" -O0 caught.c -o plain
expect 1 "$ETCH" diagnose --no-lab ./plain
has err "etch cc"
[ ! -e .etch/plain-* ] || fail "it ran"
cp prog stripped
strip stripped
expect 1 "$ETCH" diagnose --no-lab ./stripped
has err "etch cc"

# A source that has changed since, which its time does not tell; one that only got another time; one that is gone.
touch -d '+1 hour' caught.c
expect 0 "$ETCH" sketch ./prog $failing $passing
! grep -q 'changed' out || fail "a file is said to have changed that has not"
cp -p caught.c keep.c
sed -i 's/total += /total  +=  /' caught.c
touch -r keep.c caught.c
expect 0 "$ETCH" sketch ./prog $failing $passing
has out "caught.c has changed since it was compiled: its lines are not what ran"
rm caught.c
expect 0 "$ETCH" sketch ./prog $failing $passing
has out "caught.c cannot be read: its lines are left blank"
cp -p keep.c caught.c

# Stores: empty, of another program, damaged, in use, where nothing can be written.
mkdir -p empty
touch "empty/$(basename "$store")"
expect 1 "$ETCH" diagnose --no-lab --runs 2 --store empty ./prog
has err "--store DIR where you may write"
rm "empty/$(basename "$store")"
mkdir "empty/$(basename "$store")"
touch "empty/$(basename "$store")/runs.db"
expect 0 "$ETCH" diagnose --no-lab --runs 2 --store empty ./prog
has err "2 runs, 1 failed"
"$ETCH" cc $recorder -g -O0 child.c -o child
expect 0 "$ETCH" diagnose --no-lab --runs 2 --store empty ./child
has err "2 runs, 1 failed"
echo "this is no database, and it is long enough to be seen as none" >"$store/runs.db"
rm -f "$store"/runs.db-*
expect 1 "$ETCH" diagnose --no-lab --runs 2 ./prog
has err "--fresh, which forgets the runs in it"
expect 0 "$ETCH" diagnose --no-lab --runs 2 --fresh ./prog
has err "2 runs, 1 failed"
exec 9>"$store/lock"
flock -s 9
expect 1 "$ETCH" diagnose --no-lab --runs 2 --fresh ./prog
has err "another etch diagnose is at work"
exec 9>&-
expect 1 "$ETCH" diagnose --no-lab --store /proc/etch ./prog
has err "--store DIR where you may write"

# A disk that fills up: what is known by then is shown.
if unshare -rm mount -t tmpfs -o size=64k none "$work/empty" 2>/dev/null; then
  mkdir full
  cat >fill.sh <<S
mount -t tmpfs -o size=160k none full
exec "$ETCH" diagnose --no-lab --runs 60 --store full ./prog
S
  expect 1 unshare -rm bash fill.sh
  has err "cannot write"
  has out "SIGSEGV in sum()"
  rm full/* -rf
  cat >fill.sh <<S
mount -t tmpfs -o size=4k none full
exec "$ETCH" diagnose --no-lab --store full ./prog
S
  expect 1 unshare -rm bash fill.sh
  has err "room on the disk"
fi

expect 2 "$ETCH" diagnose
expect 2 "$ETCH" diagnose --no-lab --jobs none ./prog
expect 2 "$ETCH" diagnose --no-lab --timeout 0 ./prog
expect 1 "$ETCH" diagnose --no-lab ./no-such-program
expect 1 "$ETCH" diagnose --no-lab no-such-program
expect 1 "$ETCH" diagnose --no-lab /
done_checking
