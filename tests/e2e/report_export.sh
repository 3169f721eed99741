#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What etch report writes for other tools is what they read, with the same sums; the flame graph works in a browser.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs/report
tools=$ETCH_SOURCE/tests/tools
cd "$work"
"$ETCH" c++ --record -O2 -g -x c++ "$programs/slow_calls.c" -o slow_calls
expect 0 "$ETCH" record --source soft --snapshot 16M -o run.etch ./slow_calls
expect 0 "$ETCH" report run.etch --json -o table.json

expect 0 "$ETCH" report run.etch --export folded -o folded
expect 0 "$ETCH" report run.etch --export speedscope -o speedscope.json
python3 "$tools/check_exports.py" table.json folded speedscope.json || fail "folded or speedscope is wrong"
checks=$((checks + 1))

expect 0 "$ETCH" report run.etch --export pprof -o run.pb
expect 0 "$ETCH" report run.etch --export perfetto -o run.pftrace
if command -v protoc >/dev/null; then
  protoc -I "$tools" --decode=pprof.Profile "$tools/pprof.proto" <run.pb >pprof.txt || fail "run.pb is no pprof profile"
  protoc -I "$tools" --decode=perfetto.Trace "$tools/perfetto.proto" <run.pftrace >perfetto.txt || fail "run.pftrace is no trace"
  ! grep -qE '^ *[0-9]+[: ]' pprof.txt perfetto.txt || fail "a field that the format does not have"
  [ "$(grep -c 'type: TYPE_SLICE_BEGIN' perfetto.txt)" -eq "$(grep -c 'type: TYPE_SLICE_END' perfetto.txt)" ] || fail "slices that do not end"
  [ "$(grep -c 'type: TYPE_SLICE_BEGIN' perfetto.txt)" -eq "$(python3 -c 'import json; print(sum(x["calls"] for x in json.load(open("table.json"))["functions"]))')" ] || fail "a slice for each call"
  checks=$((checks + 4))
fi
# pprof itself
if command -v go >/dev/null && go tool pprof -h >/dev/null 2>&1; then
  go tool pprof -top -sample_index=calls run.pb >top.txt 2>/dev/null || fail "pprof does not read run.pb"
  grep -Eq '109152 .* put' top.txt || { cat top.txt >&2; fail "pprof counts other calls"; }
  checks=$((checks + 1))
fi

expect 0 "$ETCH" report run.etch --flame flame.html
expect 0 "$ETCH" report run.etch run.etch --diff --flame diff.html
! grep -Eq '(src|href)=|https?://' flame.html || fail "the page needs something from elsewhere"
if command -v chromium >/dev/null; then
  for page in flame diff; do
    timeout 120 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=2000 --dump-dom "file://$work/$page.html" 2>/dev/null | tr "\n" " " >"$page.dom" || fail "chromium did not open $page.html"
    for name in handle insert rehash backoff; do
      grep -q "class=\"f\"[^>]*aria-label=\"$name" "$page.dom" || fail "$page.html does not draw $name"
      checks=$((checks + 1))
    done
  done
fi

# The Chrome form of etch decode places events within their bounds, and says that it does.
expect 0 "$ETCH" decode run.etch --as chrome -o chrome.json
python3 -c 'import json
d = json.load(open("chrome.json"))
assert "instructions" in d["otherData"]["times"]
assert any("entered" in e.get("args", {}) for e in d["traceEvents"])' || fail "chrome.json does not mark its times"
done_checking
