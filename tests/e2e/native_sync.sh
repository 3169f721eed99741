#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Synchronisation events of a program that makes a known number of each, with stamps in the order in which they happened.
. "$(dirname "$0")/lib.sh"
"$ETCH_CC" -O1 -g -pthread "$ETCH_SOURCE/tests/programs/native/syncs.c" -o "$work/syncs" 2>/dev/null
expect 0 "$ETCH" record --source none -o "$work/run.etch" "$work/syncs"
[ "$(cat "$work/out")" = fine ] || fail "the program was disturbed"
"$ETCH" info --records "$work/run.etch" >"$work/records"
python3 - "$work/records" <<'PY' || fail "the events are not those that happened"
import collections, json, sys
syncs, threads = [], set()
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "syncs" in r: syncs += [dict(s, op=s["op"].replace("_", " ")) for s in r["syncs"]["syncs"]]
    if "thread" in r: threads.add(r["thread"]["tid"])
assert {s["tid"] for s in syncs} == threads, (threads, {s["tid"] for s in syncs})
ok = collections.Counter(s["op"] for s in syncs if s["result"] == 0)
want = {"thread create": 3, "thread start": 3, "thread join": 3, "rwlock rdlock": 1, "rwlock wrlock": 1, "rwlock unlock": 2,
        "spin lock": 1, "spin unlock": 1, "sem post": 2, "sem wait": 2, "cond signal": 2, "barrier enter": 4}
for op, n in want.items():
    assert ok[op] == n, (op, ok[op], n, ok)
assert ok["thread exit"] in (2, 3), ok      # the cancelled one may end before it began
failed = collections.Counter((s["op"], s["result"]) for s in syncs if s["result"] not in (0, -1))
assert failed[("rwlock wrlock", 16)] == 1 and failed[("sem wait", 11)] == 1, failed
assert ok["mutex lock"] == ok["mutex unlock"] and ok["mutex lock"] >= 6, ok
assert ok["cond wait begin"] == ok["cond wait end"], ok
n = lambda v: int(v, 0) if isinstance(v, str) else v
# A lock's stamp comes after the unlock before it: acquire after return, release before the call.
held = {}
for s in sorted(syncs, key=lambda s: s["tsc"]):
    o = s["object"]
    if s["op"] == "mutex lock" and s["result"] == 0:
        assert o not in held, "two hold one mutex"
        held[o] = s["tid"]
    elif s["op"] == "mutex unlock":
        assert held.pop(o) == s["tid"]
    elif s["op"] == "cond wait begin":
        assert held.pop(s["other"]) == s["tid"]
    elif s["op"] == "cond wait end":
        assert s["other"] not in held
        held[s["other"]] = s["tid"]
# Create, start and join speak of the same thread, in that order.
creates = {n(s["other"]): s["tsc"] for s in syncs if s["op"] == "thread create"}
for s in syncs:
    if s["op"] == "thread start":
        assert n(s["object"]) in creates
    if s["op"] == "thread join":
        assert n(s["other"]) in creates
assert all(n(s["caller"]) for s in syncs if s["op"].startswith("mutex"))
PY
checks=$((checks + 1))
expect 0 "$ETCH" record --source none --no-sync -o "$work/run.etch" "$work/syncs"
has "$work/err" " 0 synchronisation events"
# Linked with it and not recorded, the library does nothing.
LD_PRELOAD=$ETCH_BUILD/etch-sync.so expect 0 "$work/syncs"
done_checking
