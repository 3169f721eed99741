#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch calibrate on this machine: a table, JSON whose ranges make sense, a picture that is well-formed, and usage errors.
. "$(dirname "$0")/lib.sh"
grep -q '^flags.*constant_tsc.*nonstop_tsc' /proc/cpuinfo || skip "the clock of this machine is not fit for it"
expect 0 "$ETCH" calibrate --seconds 1 --plot "$work/clocks.svg"
has "$work/out" "TSC constant, nonstop"
has "$work/out" "CLOCK_MONOTONIC_RAW"
has "$work/out" "took "
has "$work/clocks.svg" "</svg>"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$work/clocks.svg" || fail "the picture is not XML"
expect 0 "$ETCH" calibrate --seconds 1 --json
python3 - "$work/out" <<'PY' 2>"$work/py" || { cat "$work/py" >&2; fail "the JSON is not what it should be"; }
import json, os, sys
d = json.load(open(sys.argv[1]))
assert d["orders"] is True and d["refused_because"] == ""
assert len(d["cpus"]) == len(os.sched_getaffinity(0)) - 1
for c in d["cpus"]:
    if c["bounds"]:  # null on a machine too busy to measure
        assert c["bounds"]["lo"] < c["bounds"]["hi"]
        for v in c["variants"].values():
            assert v is None or (v["lo"] <= c["bounds"]["lo"] and v["hi"] >= c["bounds"]["hi"]), v
    if c["statistics"]:
        assert c["statistics"]["confidence"] == 0.99999
        assert c["statistics"]["range"]["lo"] < c["statistics"]["range"]["hi"]
assert 0.1 < d["perf_clock"]["monotonic_raw"]["cycles_per_ns"] < 20
if d["trap_latency"]:
    assert d["trap_latency"]["outside"] == 0  # the conversion puts every trap between the stamps around it
PY
checks=$((checks + 1))

# The measurement is kept for the next command and for recordings: for this user alone, and checked. Damaged, or of
# another boot, it is measured again.
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 0700 "$XDG_RUNTIME_DIR"
kept=$XDG_RUNTIME_DIR/etch/clocks
expect 0 "$ETCH" calibrate --seconds 2
! grep -q "^kept" "$work/out" || fail "a measurement that was asked for is an old one"
if [ -f "$kept" ]; then # not on a machine too busy to measure
  [ "$(stat -c %a "$kept")" = 600 ] || fail "others can read $kept"
  cp "$kept" "$work/kept"
  ETCH_LOG=calibrate expect 0 "$ETCH" record --source none -o "$work/kept.etch" true
  has "$work/err" "clocks as measured "
  expect 0 "$ETCH" calibrate --json
  has "$work/out" '"kept": true'
  for damage in "truncate -s -1" "truncate -s 0" "sed -i s/boot=./boot=x/" "chmod 0644"; do
    cp "$work/kept" "$kept"
    chmod 0600 "$kept"
    $damage "$kept"
    ETCH_LOG=calibrate expect 0 "$ETCH" record --source none -o "$work/kept.etch" true
    has "$work/err" "clocks are measured: "
  done
  rm "$kept"
  ln -s "$work/kept" "$kept"
  ETCH_LOG=calibrate expect 0 "$ETCH" record --source none -o "$work/kept.etch" true
  has "$work/err" "clocks are measured: no measurement is kept"
  ETCH_LOG=calibrate expect 0 "$ETCH" record --clock 0.1 --source none -o "$work/kept.etch" true
  ! grep -q "clocks as measured" "$work/err" || fail "--clock took an old measurement"
fi
# A machine whose clock changes its speed, or stops: no order across CPUs, and it says why; in a recording too.
mkdir -p "$work/root/proc"
for lacks in constant nonstop; do
  sed "s/ ${lacks}_tsc//" /proc/cpuinfo >"$work/root/proc/cpuinfo"
  ETCH_CLOCK_ROOT=$work/root expect 1 "$ETCH" calibrate --seconds 0.2
  has "$work/out" "NOT $lacks"
  has "$work/out" "events are NOT ordered across CPUs by this clock: the time stamp counter is not $lacks"
  ETCH_CLOCK_ROOT=$work/root expect 1 "$ETCH" calibrate --seconds 0.2 --json
  has "$work/out" '"orders": false'
  has "$work/out" "the time stamp counter is not $lacks"
done
"$ETCH_CC" -O1 -g -pthread "$ETCH_SOURCE/tests/programs/native/ordered.c" -o "$work/ordered"
ETCH_CLOCK_ROOT=$work/root expect 0 "$ETCH" record --source none -o "$work/run.etch" "$work/ordered" "$work/log" 60 1
has "$work/err" "events are not ordered across CPUs by their clocks"
expect 0 "$ETCH_BUILD/tests/ordered" syncs "$work/run.etch" "$work/log"
has "$work/out" "0 clocks of "
has "$work/out" "not constant and nonstop"
! grep -q 'by.* clock' "$work/out" || { cat "$work/out" >&2; fail "events are ordered by a clock that is not fit"; }

expect 0 taskset -c 0 "$ETCH" calibrate --seconds 0.2
has "$work/out" "one CPU only"
expect 2 "$ETCH" calibrate --seconds zero
expect 2 "$ETCH" calibrate --confidence 100
expect 2 "$ETCH" calibrate extra
expect 1 "$ETCH" calibrate --seconds 0.1 --plot /nonexistent/x.svg
has "$work/err" "cannot write /nonexistent/x.svg"
done_checking
