#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Steps of control flow as events: a token that two threads hand over, recorded as PT packets under QEMU. The steps that made
# one thread's accesses are ordered against the other's accesses: by time alone nothing is wrong; where the steps are tied to
# their accesses, all is known. ETCH_STEP_TOKENS sets how many.
. "$(dirname "$0")/lib.sh"
need_vpt
tokens=${ETCH_STEP_TOKENS:-300}
"$ETCH_CC" -O1 -g -pthread "$ETCH_SOURCE/tests/programs/token.c" -o "$work/token"
expect 0 "$ETCH" record --source vpt --watch token -o "$work/run.etch" "$work/token" "$tokens"
has "$work/err" "nothing lost"
expect 0 "$ETCH_BUILD/tests/ordered" steps "$work/run.etch" "$tokens"
cat "$work/out"
[ "$(grep -c ' 0 wrong' "$work/out")" -eq 2 ] || fail "wrong pairs"
done_checking
