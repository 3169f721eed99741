#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What ./run demo shows: a C and a C++ program, each with its failure, a cause, and the threads by the user's own functions.
. "$(dirname "$0")/lib.sh"
cd "$work"
expect 0 bash "$ETCH_SOURCE/tests/demo.sh" "$ETCH_BUILD"
# The consumer uses the mutex in three places: which one meets the null pointer is up to the machine.
grep -qE '^ etch  SIGSEGV in consumer\(\)  bug\.c:(15|18|22) ' "$work/out" || fail "no SIGSEGV in consumer()"
grep -qE '^ CAUSE .*main bug\.c:39 ' "$work/out" || fail "the first answer is not the write at bug.c:39"
checks=$((checks + 2))
has out "SIGSEGV in config::Store::timeout()  bug.cpp:"
[ "$(grep -c '^ CAUSE' "$work/out")" -eq 2 ] || fail "not both have a cause"
checks=$((checks + 1))
python3 - "$ETCH_BUILD/demo/settings.json" <<'PY' || fail "the C++ sketch"
import json, sys
s = json.load(open(sys.argv[1]))
names = [t["name"] for t in s["threads"]]
assert not any("std::" in n for n in names), names
assert any("this->current_" in p["text"] for p in s["predictors"]), s["predictors"][:3]
PY
# It ends with the sentences and the pages, and each page is there.
tail -n 16 out >end
has end "== What etch found in pbzip2"
has end "(SIGSEGV)"
grep -q 'T1 (main) .*line 39' <(tr '\n' ' ' <end) || fail "the sentence does not name the write"
for name in pbzip2 settings; do
  page=$(sed -n "s|^file://\(.*/$name.html\)\$|\1|p" end)
  [ -s "$page" ] || fail "no page of $name"
  checks=$((checks + 1))
done
done_checking
