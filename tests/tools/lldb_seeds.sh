#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lldb_seeds.sh FOLDER: small descriptions of LLDB bundles for the fuzzer to start from.
set -eu
cat >"$1/threads" <<'J'
{"type":"intel-pt","cpuInfo":{"vendor":"GenuineIntel","family":6,"model":79,"stepping":1},"processes":[{"pid":1,"threads":[{"tid":2,"iptTrace":"trace.json"}],"modules":[{"file":"trace.json","systemPath":"a","loadAddress":4194304,"uuid":"6AA9A4E2-6F28"}]}]}
J
cat >"$1/cpus" <<'J'
{"type":"intel-pt","cpus":[{"id":4,"iptTrace":"trace.json","contextSwitchTrace":"trace.json"}],"tscPerfZeroConversion":{"timeMult":1076264588,"timeShift":31,"timeZero":18433473881008870804},"processes":[{"pid":1,"modules":[]}]}
J
