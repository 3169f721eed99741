#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many crashes: each a whole bundle with the right instruction, nothing left behind. Many times etch is killed at a
# random moment: the program is never harmed, the bundle is readable. ETCH_CRASHES and ETCH_KILLS say how many.
. "$(dirname "$0")/lib.sh"
crashes=${ETCH_CRASHES:-30} kills=${ETCH_KILLS:-20}
for p in failing steady; do
  "$ETCH_CC" -O0 -g -pthread "$ETCH_SOURCE/tests/programs/native/$p.c" -o "$work/$p"
done
watch=()
"$ETCH" doctor --json | grep -q '"delivered": true' && watch=(--watch hot)
python3 - "$ETCH" "$work" "$crashes" "$kills" "${watch[@]}" <<'PY' || fail "see above"
import json, os, random, re, signal, subprocess, sys, time
etch, work, crashes, kills, watch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
site = int([l for l in subprocess.check_output(["nm", work + "/failing"], text=True).splitlines() if l.endswith(" the_load")][0].split()[0], 16)
bundle = work + "/run.etch"
def processes(name):
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{p}/exe") == f"{work}/{name}":
                found.append(p)
        except OSError:
            pass
    return found
before = sorted(os.listdir(work))

def instruction(path):
    f, images = None, []
    for line in subprocess.check_output([etch, "info", "--records", path], text=True).splitlines():
        r = json.loads(line)
        if "failure" in r: f = r["failure"]
        if "image" in r: images.append(r["image"])
    n = lambda v: int(v, 0) if isinstance(v, str) else v
    ip = n(f["ip"])
    for i in images:
        if n(i["start"]) <= ip < n(i["start"]) + n(i["size"]) and i["path"] == work + "/failing":
            return ip - n(i["start"]) + n(i["file_offset"])

right = 0
for i in range(crashes):
    done = subprocess.run([etch, "record", "--source", "none", "--clock", "0", "-o", bundle, work + "/failing", "segv"], capture_output=True)
    assert done.returncode == 139, (i, done)
    assert subprocess.run([etch, "info", "--verify", bundle], capture_output=True).returncode == 0, (i, "not whole")
    assert instruction(bundle) == site, (i, "another instruction")
    right += 1
os.remove(bundle)
assert not processes("failing"), "processes left"
assert sorted(os.listdir(work)) == before, "files left"
print(f"{right} of {crashes} crashes: whole, right instruction")

# Orphans come to us: the program's own status is the witness.
import ctypes
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
def reap():
    for t in range(1500):
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            time.sleep(0.01)
            continue
        # Under a sanitizer etch leaves a child of its own, which looks for leaks and dies with it: not the program.
        name = open(f"/proc/{ended.si_pid}/comm").read().strip()
        _, status = os.waitpid(ended.si_pid, 0)
        assert status == 0 or name != "steady", (i, "the program ended with", status)
    sys.exit(f"kill {i}: the program hangs")

random.seed(int(os.environ.get("ETCH_SEED", "5")))
started = unharmed = cut = 0
for i in range(kills):
    out = f"{work}/out"
    for f in (out, bundle):
        if os.path.exists(f): os.remove(f)
    p = subprocess.Popen([etch, "record", "--source", "none", "--clock", "0", *watch, "-o", bundle, work + "/steady", out],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Every other kill comes after the program began, however slow the machine is.
    while i % 2 and p.poll() is None and not (os.path.exists(out) and os.path.getsize(out)):
        time.sleep(0.001)
    time.sleep(random.random() * (0.05 if i % 2 else 0.15))
    p.send_signal(signal.SIGKILL)
    p.wait()
    reap()
    text = open(out).read() if os.path.exists(out) else ""
    if text:
        started += 1
        assert re.match(r"began\ndone 400 800\n$", text), (i, text)
        unharmed += 1
    if os.path.exists(bundle):
        info = subprocess.run([etch, "info", bundle], capture_output=True, text=True)
        assert info.returncode == 0 and "damaged" not in info.stdout, (i, info)
        cut += "cut" in info.stdout.splitlines()[0]
assert started >= kills // 4, "the kills came too early to say anything"
print(f"{kills} kills of etch: {started} programs had begun, {unharmed} unharmed; every bundle readable, {cut} cut short")
PY
checks=$((checks + 2))
done_checking
