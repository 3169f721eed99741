#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A binary that was rebuilt since is not the code that ran: nothing of it is decoded, and the loss says why.
. "$(dirname "$0")/lib.sh"
cd "$work"

# ---- One library that is another build: the unwind tables of all others stay ----
# Only unwind tables lead through qsort to main: libc has no frame pointers.
cat >sort.c <<'C'
#include <stdlib.h>
int idle(void);
int *volatile nowhere;
__attribute__((noinline)) static int compare(const void *a, const void *b)
{
    *nowhere = *(const int *)a;
    return *(const int *)b;
}
int main(int argc, char **argv)
{
    int all[] = {3, argc, 1, idle()};
    qsort(all, 4, sizeof(int), compare); /* @sort */
    return argv[0][0] == all[0];
}
C
echo 'int idle(void) { return 2; }' >idle.c
"$ETCH_CC" -shared -fPIC -g -Wl,--build-id idle.c -o libidle.so
"$ETCH" cc -g -O2 -Wl,--build-id sort.c -o sort -L. -lidle -Wl,-rpath,"$work"
got=0
"$ETCH" record --source none -o sort.etch ./sort >/dev/null 2>&1 || got=$?
[ $got -eq 139 ] || fail "sort did not crash"
line=$(grep -n '@sort' sort.c | cut -d: -f1)
for what in '' -Wl,--build-id -Wl,--build-id=none; do
  if [ -n "$what" ]; then # larger than what ran: would cover the libraries beside it
    echo 'int idle(void) { return 3; } char more[9000000] = {1};' >idle.c
    "$ETCH_CC" -shared -fPIC -g "$what" idle.c -o libidle.so
  fi
  expect 0 "$ETCH" sketch sort sort.etch
  has out "main()  sort.c:$line"
done
rm libidle.so
expect 0 "$ETCH" sketch sort sort.etch
has out "main()  sort.c:$line"

need_vpt
echo 'int main(int c, char **v) { (void)v; return c - 1; }' >p.c
"$ETCH_CC" -g -Wl,--build-id -o p p.c
expect 0 "$ETCH" record --source vpt -o p.etch ./p
expect 0 "$ETCH" decode p.etch --as line
has out "p.c:1 main"
echo 'int main(int c, char **v) { (void)v; return c * 3 - 3; }' >p.c
"$ETCH_CC" -g -Wl,--build-id -o p p.c
expect 0 "$ETCH" decode p.etch --as line
if grep -q '^p\.c:1 ' out; then cat out >&2; fail "lines of another build"; fi
cat out err >both
grep -q 'is now another build' both || { cat both >&2; fail "why there is no code is not said"; }
checks=$((checks + 2))
done_checking
