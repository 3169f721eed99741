#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The folders in shared memory: links are not followed, folders of others are not used, live ones are not removed from another PID
# namespace, the program's cutting of its own rings does not end etch, and --wall ends the recording of a process that was joined.
. "$(dirname "$0")/lib.sh"
own_memory "$@"
cd "$work"
uid=$(id -u)
folder=/dev/shm/etch-$uid
cat >hello.c <<'C'
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc > 1)
        sleep(20);
    return puts("hello") < 0 || argv[0] == NULL;
}
C
"$ETCH" cc --record -O1 -g hello.c -o hello
soft() { expect 0 "$ETCH" record --source soft --clock 0 -o run.etch -- ./hello "$@"; }

# ---- Links, where a folder of a dead etch would be, to what is dear to somebody
mkdir dear
echo precious >dear/file
links() {
  ln -sfn "$work/dear" /dev/shm/etch-1234567-abcdef
  [ ! -d "$folder" ] || ln -sfn "$work/dear" "$folder/run-000000000000"
  [ ! -d "$folder" ] || ln -sfn "$work/dear" "$folder/new-000000000000"
}
links
soft
links 2>/dev/null || true
soft
[ "$(cat dear/file)" = precious ] || fail "a link was followed"
rm -rf /dev/shm/etch-*
# The folder's own name is a link.
ln -sfn "$work/dear" "$folder"
soft
[ "$(ls dear)" = file ] || fail "a link was followed to make a folder"
[ -L "$folder" ] || fail "the link was removed"
[ -d "$(echo "$folder".*)" ] || fail "no other name was taken"
[ "$(find "$folder".* -mindepth 1 | wc -l)" -eq 0 ] || fail "something is left in memory"
soft # the same other name again
[ "$(find /dev/shm -mindepth 1 | wc -l)" -eq 2 ] || fail "each run makes a folder of its own"
rm -rf /dev/shm/etch-*
# A folder that others may write to, or that is another's, is not used.
mkdir -m 0777 "$folder"
soft
[ "$(find "$folder" -mindepth 1 | wc -l)" -eq 0 ] || fail "a folder was used that everybody may write to"
checks=$((checks + 5))
rm -rf /dev/shm/etch-*
if chown 65534 . 2>/dev/null && chown "$uid" .; then
  mkdir -m 0700 "$folder"
  chown 65534 "$folder"
  soft
  [ "$(find "$folder" -mindepth 1 | wc -l)" -eq 0 ] || fail "a folder was used that is another's"
  checks=$((checks + 1))
  rm -rf /dev/shm/etch-*
fi

# ---- Only its user sees it, and nothing is left
"$ETCH" record --source soft --clock 0 -o run.etch -- ./hello wait >out 2>err &
etch=$!
until ls "$folder"/run-*/*.ring >/dev/null 2>&1 || ls "$folder"/run-*/[0-9]* >/dev/null 2>&1; do
  kill -0 $etch || { cat err >&2; fail "etch ended"; }
  sleep 0.01
done
[ "$(stat -c %a "$folder")" = 700 ] || fail "others get in"
[ "$(stat -c %a "$folder"/run-*)" = 700 ] || fail "others get in"
# ---- An etch that knows none of our processes leaves a live run alone
if unshare -pf --mount-proc true 2>/dev/null; then
  expect 0 unshare -pf --mount-proc "$ETCH" record --source soft --clock 0 -o other.etch -- ./hello
fi
soft
[ -e "$folder"/run-*/story ] || fail "a live run's folder was removed"
kill -TERM $etch
wait $etch || true
has err "nothing lost"
[ "$(find "$folder" -mindepth 1 | wc -l)" -eq 0 ] || fail "something is left in memory"

# ---- The program cuts what it shares with etch
cat >cutter.c <<'C'
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int sum;

int main(int argc, char **argv)
{
    glob_t found;

    for (int i = 0; i < 100000; i++)
        sum += i % 3 ? i : -i;
    if (glob(argv[1], 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (truncate(found.gl_pathv[i], atol(argv[2])) < 0)
                perror("truncate");
    _exit(argc > 3);
}
C
if has_vpt; then
  "$ETCH_CC" -O1 -g cutter.c -o cutter
  for length in 0 4096; do # the program's own death of it (SIGBUS in its plugin) is its own doing
    status=0
    "$ETCH" record --source vpt -o cut.etch -- ./cutter "$folder/run-*/*.thread" $length >out 2>err || status=$?
    grep -q "etch record: vpt, 1 thread" err || { cat err >&2; fail "etch ended with $status"; }
    expect 0 "$ETCH" info cut.etch
    ! grep -q '; nothing lost' err || fail "a ring that was cut is no loss"
    checks=$((checks + 1))
  done
fi

# ---- --wall with --pid
sleep 100 &
pid=$!
expect 0 "$ETCH" record --source none --clock 0 --wall 0.3 -o wall.etch --pid $pid
has err "the program goes on"
expect 0 "$ETCH" info --verify wall.etch
kill -0 $pid || fail "it was ended"
kill $pid
done_checking
