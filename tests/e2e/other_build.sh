#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A binary that was rebuilt since is not the code that ran: nothing of it is decoded, and the loss says why.
. "$(dirname "$0")/lib.sh"
need_vpt
cd "$work"
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
