#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Failures are captured before the process is gone: the failing instruction, the address, every thread, the words.
. "$(dirname "$0")/lib.sh"
"$ETCH_CC" -O0 -g -pthread "$ETCH_SOURCE/tests/programs/native/failing.c" -o "$work/failing"

# fails HOW STATUS PYTHON: `f` is the failure, `r` all records
fails() {
  local how=$1 status=$2 check=$3
  shift 3
  rm -f "$work/run.etch"
  expect "$status" "$ETCH" record --source none --clock 0 "$@" -o "$work/run.etch" "$work/failing" "$how"
  "$ETCH" info --verify "$work/run.etch" >/dev/null || fail "$how: the bundle is not whole"
  "$ETCH" info --records "$work/run.etch" >"$work/records"
  CHECK=$check SITE=$(nm "$work/failing" | sed -n 's/ . the_load$//p') python3 - "$work/records" <<'PY' || fail "$how: $check"
import json, os, sys
r = [json.loads(l) for l in open(sys.argv[1])]
def body(name): return [x[name] for x in r if name in x]
number = lambda v: int(v, 0) if isinstance(v, str) else v
fs, outcome = body("failure"), body("outcome")[0]
f = fs[0] if fs else None
images = body("image")
def place(ip):
    for i in images:
        s = number(i["start"])
        if s <= number(ip) < s + number(i["size"]):
            return i["path"].split("/")[-1], number(ip) - s + number(i.get("file_offset", 0))
site = int(os.environ["SITE"], 16)
exec("assert " + os.environ["CHECK"])
PY
  checks=$((checks + 1))
}
"$ETCH" record --source none --clock 0 -o "$work/run.etch" "$work/failing" segv >/dev/null 2>&1 || true
"$ETCH" info --records "$work/run.etch" | head -n 3 >/dev/null

fails segv 139 'f["signal"] == 11 and place(f["ip"]) == ("failing", site) and number(f.get("fault_address", 0)) == 0 and len(f["threads"]) == 2'
fails segv 139 'all(len(t["registers"]) == 24 and t["stack"] for t in f["threads"]) and len(f["threads"][0]["frames"]) >= 6 and not f["threads"][0].get("frames_scanned")'
fails assert 134 'f["signal"] == 6 and "zero == 1" in f["message"]'
fails free 134 'f["signal"] == 6 and "double free" in f["message"]'
fails fpe 136 'f["signal"] == 8 and number(f["fault_address"]) == number(f["ip"]) and place(f["ip"])[0] == "failing"'
fails ill 132 'f["signal"] == 4 and place(f["ip"])[0] == "failing"'
fails bus 135 'f["signal"] == 7 and number(f["fault_address"]) != 0'
fails handled 3 'f is None and outcome["exit_status"] == 3'
has "$work/out" "handled 11"
fails kill 137 'f is None and outcome["signal"] == 9'
fails exit 7 'f is None'
fails exit 7 'f["kind"] == "exit" and outcome["exit_status"] == 7' --fail-on-exit
fails hang 137 'f["kind"] == "hang" and len(f["threads"]) == 2 and all(t["waiting_in"] == 35 for t in f["threads"])' --hang 0.5 --kill
fails hang 137 'f["kind"] == "timeout"' --wall 0.3 --kill
done_checking
