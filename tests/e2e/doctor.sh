#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch doctor on this machine, with and without permission: valid JSON, a source, and never a failure.
. "$(dirname "$0")/lib.sh"
expect 0 "$ETCH" doctor
has "$work/out" "auto takes "
has "$work/out" "sandbox for reading"
expect 0 "$ETCH" doctor --json
python3 - "$work/out" <<'PY' 2>"$work/py" || { cat "$work/py" >&2; fail "the JSON is not what it should be"; }
import json, os, sys
d = json.load(open(sys.argv[1]))
pt = os.path.isdir("/sys/bus/event_source/devices/intel_pt")
assert d["intel_pt"]["present"] == pt
assert d["source"] in ("pt", "vpt", "none")
if not pt:
    assert d["source"] != "pt"
    check = [c for c in d["checks"] if c["id"] == "intel_pt"][0]
    assert check["state"] == "missing" and check["found"].startswith("no: ") and check["advice"]
flags = [l for l in open("/proc/cpuinfo") if l.startswith("flags")][0].split()
assert d["tsc"]["constant"] == ("constant_tsc" in flags)
assert 0 <= d["watchpoints"]["slots"] <= 16
for c in d["checks"]:
    assert c["state"] != "missing" or c["advice"], c
PY
checks=$((checks + 1))
# An empty PATH: no clang, no QEMU, still a diagnosis.
expect 0 env PATH=/nonexistent ETCH_VPT_QEMU=/nonexistent/qemu "$ETCH" doctor
has "$work/out" "apt-get install qemu-user"
has "$work/out" "apt-get install clang-19"
# A QEMU that takes no plugins: no vpt, and what to do.
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 10.0 (of here)" || { echo "unknown option" >&2; exit 1; }\n' >"$work/qemu"
chmod +x "$work/qemu"
expect 0 env ETCH_VPT_QEMU="$work/qemu" "$ETCH" doctor
has "$work/out" "qemu-x86_64 version 10.0, without plugins"
has "$work/out" "etch cc --record, which needs no QEMU; or ./run qemu"
! grep -q "auto takes vpt" "$work/out" || fail "auto takes vpt without plugins"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  cp "$ETCH" "$work/etch"
  chmod 755 "$work" "$work/etch"
  expect 0 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$work/etch" doctor --json
  python3 -m json.tool "$work/out" >/dev/null || fail "not JSON without permission"
fi
done_checking
