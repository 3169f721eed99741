#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two threads hand a token over through a watched variable; etch record watches, and what is found from the bundle is held
# against the truth, which the values are: no hand-over in the wrong order. ETCH_TOKENS sets how many (bench: 100,000).
. "$(dirname "$0")/lib.sh"
"$ETCH" doctor --json | python3 -c 'import json,sys; sys.exit(0 if json.load(sys.stdin)["watchpoints"]["delivered"] else 1)' ||
  skip "no hardware watchpoints here"
tokens=${ETCH_TOKENS:-2000}
"$ETCH_CC" -O1 -g -pthread "$ETCH_SOURCE/tests/programs/token.c" -o "$work/token"
expect 0 "$ETCH" record --source none --watch token --watch-budget none --watch-share 0 --clock 1 -o "$work/run.etch" \
  "$work/token" "$tokens"
has "$work/out" "$tokens"
has "$work/err" "nothing lost"
expect 0 "$ETCH_BUILD/tests/ordered" token "$work/run.etch" "$tokens"
cat "$work/out"
[ "$(grep -c ' 0 wrong' "$work/out")" -eq 4 ] || fail "wrong pairs"
done_checking
