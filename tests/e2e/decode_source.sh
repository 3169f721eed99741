#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real captures in the forms that speak of source: lines, a tree of calls across three modules with an unmapped gap, and
# a Trace Event file that a JSON parser reads. No address and no name of this machine's libraries is in what is expected.
set -eu
data=${ETCH_PTDATA:-$ETCH_SOURCE/../shared/ptdata}
[ -d "$data/lldb-single" ] || { echo "skipped: no real captures here (ETCH_PTDATA)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$ETCH" decode "$data/lldb-single/trace.json" --as line --fields srcline,sym >"$dir/line"
diff "$dir/line" - <<END
main.cpp:2 main
main.cpp:4 main
main.cpp:5 main
main.cpp:4 main
main.cpp:5 main
main.cpp:4 main
main.cpp:5 main
main.cpp:4 main
main.cpp:5 main
main.cpp:4 main
END

# By a path that is not absolute the same.
(cd "$data" && "$ETCH" decode lldb-single/trace.json --as line --fields srcline,sym) | cmp - "$dir/line"

"$ETCH" decode "$data/lldb-multi-file/multi-file-no-ld.json" --as call >"$dir/call" 2>/dev/null
diff "$dir/call" - <<END
thread 815455/815455
                          ? | main  (running when the trace began)
                          ? |   a.out+0x400510
                          ? |     -- unmapped code: no mapping is known there
                          ? |   foo()
                          ? |     bar()
                          ? | (the trace ends in main)
END

"$ETCH" decode "$data/lldb-multi-file/multi-file-no-ld.json" --as chrome -o "$dir/chrome" 2>/dev/null
python3 - "$dir/chrome" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
calls = sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["ph"] == "X")
assert [c[2] for c in calls] == ["main", "a.out+0x400510", "foo()", "bar()"], calls
for a in calls:
    for b in calls:
        apart = a[1] <= b[0] or b[1] <= a[0]
        inside = a[0] <= b[0] and b[1] <= a[1] or b[0] <= a[0] and a[1] <= b[1]
        assert apart or inside, (a, b)
assert any(e["ph"] == "i" for e in events), "the loss is missing"
END

# A static program up to the signal that it raises; its binary lies beside the recording, not where it was.
"$ETCH" decode "$data"/hase-control-flow/*.perf --as call 2>/dev/null | sed -n 's/^[^|]*| //p' | tail -n 9 >"$dir/call"
diff "$dir/call" - <<END
        _init
        frame_dummy
        register_tm_clones  (tail call)
      main
        raise
          __block_app_sigs
          __syscall_ret
          __restore_sigs
          (the trace ends in __restore_sigs)
END

# A file that cannot be written, and a field that lines do not have.
if "$ETCH" decode "$data/lldb-single/trace.json" --as chrome -o "$dir/no/such" 2>"$dir/err"; then exit 1; fi
grep -q "cannot write" "$dir/err"
if "$ETCH" decode "$data/lldb-single/trace.json" --as line --fields addr 2>"$dir/err"; then exit 1; fi
grep -q "no field 'addr'" "$dir/err"
