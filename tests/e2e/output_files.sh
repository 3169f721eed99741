#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The files that etch writes: for their owner alone, never through a link, and never in place of what is not etch's. An older
# recording stays until the new one is whole.
. "$(dirname "$0")/lib.sh"
cd "$work"
umask 0
programs=$ETCH_BUILD/tests/programs
record=("$ETCH" record --source none --clock 0)

# mode FILE WANT
mode() {
  checks=$((checks + 1))
  [ "$(stat -c %a "$1")" = "$2" ] || fail "$1 has mode $(stat -c %a "$1"), not $2"
}

# gone FILE...
gone() {
  local f
  for f in "$@"; do
    checks=$((checks + 1))
    [ ! -e "$f" ] || fail "$f is there"
  done
}

expect 0 "${record[@]}" -o a.etch "$programs/loops"
mode a.etch 600
cp a.etch before

# ---- A run that cannot start, or whose name is taken, harms nothing
expect 125 "${record[@]}" -o a.etch ./no-such-program
same before a.etch
expect 125 "${record[@]}" --watch no_such_variable -o a.etch "$programs/loops"
same before a.etch
gone a.etch.old
echo 'int main;' >prog.c
cp prog.c prog.before
expect 125 "${record[@]}" -o prog.c "$programs/loops"
has err "not etch's"
same prog.before prog.c
expect 125 "${record[@]}" --rings "$work" -o a.etch # holds no rings
same before a.etch

# ---- Links
ln -s a.etch link.etch
expect 125 "${record[@]}" -o link.etch "$programs/loops"
has err "it is a link"
same before a.etch
ln -s nowhere dangling.etch
expect 125 "${record[@]}" -o dangling.etch "$programs/loops"
gone nowhere

# ---- A new recording in place of an older one
expect 0 "${record[@]}" -o a.etch "$programs/loops"
expect 0 "$ETCH" info --verify a.etch
if cmp -s before a.etch; then fail "the older recording is still there"; fi
gone a.etch.old
mode a.etch 600

# ---- etch killed: the new one is there as far as it goes, and the older one beside it
cp a.etch before
mkfifo ready
"${record[@]}" -o a.etch -- bash -c 'echo $$ >ready; exec sleep 60' &
etch=$!
read -r pid <ready
kill -KILL $etch
wait $etch 2>/dev/null || true
kill "$pid"
expect 0 "$ETCH" info a.etch
has out "file cut (1)"
same before a.etch.old
# The next run harms neither.
cp a.etch cut
expect 125 "${record[@]}" -o a.etch ./no-such-program
same cut a.etch
same before a.etch.old

# ---- What is no file is written to as it is
"${record[@]}" -o /dev/stdout true 2>/dev/null | cat >piped.etch
expect 0 "$ETCH" info --verify piped.etch
expect 0 "${record[@]}" -o /dev/null "$programs/loops"
[ -c /dev/null ] || fail "/dev/null is no device any more"

# ---- Reports
"$ETCH" calibrate --seconds 0.2 --plot c.svg >/dev/null || true # where the clocks are bad the plot is there all the same
mode c.svg 600
echo mine >other.svg
ln -s other.svg link.svg
expect 1 "$ETCH" calibrate --seconds 0.2 --plot link.svg
has err "it is a link"
has other.svg mine
# ---- The store of etch diagnose
cat >fails.c <<'END'
static int *volatile nothing;
int main(void) { return *nothing; }
END
"$ETCH" cc -g -O1 -o fails fails.c
"$ETCH" diagnose --no-lab --source none --runs 2 --store deep/store ./fails >/dev/null 2>&1 || true
mode deep 700
for f in deep/store/*/*; do mode "$f" 600; done
mkdir shared
chmod 777 shared
for store in deep/store/*; do mkdir "shared/$(basename "$store")" && chmod 777 "shared/$(basename "$store")"; done
expect 1 "$ETCH" diagnose --no-lab --source none --runs 2 --store shared ./fails
has err "everybody may write to it"

[ "$(find . -name '*.svg.*' | wc -l)" -eq 0 ] || fail "a part of a report is left"
done_checking
