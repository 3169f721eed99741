# SPDX-License-Identifier: MIT
"""pt_check.py ETCH PROGRAMS SHARE CYCLES CRASHES [CASE...]: what etch recorded and decoded of each case of pt-guest.sh
against what the module saw run: instruction by instruction, thread by thread."""
import array
import json
import os
import struct
import subprocess
import sys

etch, programs, share, cycles, crashes = sys.argv[1:6]
RAN = 0


class Case:
    def __init__(self, name):
        self.folder = os.path.join(share, name)
        self.bundle = self.path("run.etch")

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def status(self):
        return int(self.text("status"))

    def says(self, words, name="err"):
        assert words in self.text(name), f"no '{words}' in: {self.text(name)}"

    def truth(self):
        """By thread: the addresses that ran."""
        ran = {}
        with open(self.path("truth"), "rb") as file:
            for ip, tid, kind in struct.iter_unpack("<QII", file.read()):
                if kind == RAN:
                    ran.setdefault(tid, []).append(ip)
        return ran

    def info(self):
        return json.loads(run("info", "--json", self.bundle))

    def records(self, kind):
        return [json.loads(r)[kind] for r in run("info", "--records", self.bundle).splitlines()
                if r.startswith('{"' + kind + '"')]

    def losses(self):
        """What the recorder said it lost, by cause."""
        return [loss["cause"] for loss in self.records("loss")]

    def bytes(self):
        """Of trace, by stream."""
        sizes = {}
        for flow in self.records("flow"):
            data = flow["data"]
            n = data["bytes"] if isinstance(data, dict) else len(data) // 2
            sizes[flow["stream"]] = sizes.get(flow["stream"], 0) + n
        return sizes


def run(*arguments):
    return subprocess.run([etch, *arguments], check=True, capture_output=True, text=True).stdout


def pieces(file):
    """By thread: the addresses that etch says ran, in pieces between which something was lost; and what."""
    ran, lost = {}, []
    for line in run("decode", file).splitlines():
        tid, _, rest = line.split(" ", 2)
        of = ran.setdefault(int(tid), [[]])
        if rest.startswith("--"):
            lost.append(rest)
            of.append([])
        else:
            of[-1].append(int(rest, 16))
    return ran, lost


def whole(file):
    """The same of a recording that lost nothing."""
    ran, lost = pieces(file)
    assert not lost, f"lost: {lost[:3]}"
    return {tid: p[0] for tid, p in ran.items()}


def same(got, want):
    assert set(got) == set(want), f"threads {sorted(got)} decoded, {sorted(want)} ran"
    for tid, ran in want.items():
        if got[tid] == ran:
            continue
        i = next((i for i, (x, y) in enumerate(zip(got[tid], ran)) if x != y), min(len(got[tid]), len(ran)))
        near = [f"{x:x}" for x in got[tid][max(0, i - 2):i + 3]], [f"{x:x}" for x in ran[max(0, i - 2):i + 3]]
        raise AssertionError(f"thread {tid}: {len(got[tid])} decoded, {len(ran)} ran; at {i} {near[0]} for {near[1]}")


def find(piece, ran, start):
    """Where the piece stands in what ran, from `start` on; -1: nowhere."""
    needle, hay = array.array("Q", piece).tobytes(), array.array("Q", ran).tobytes()
    at = hay.find(needle, 8 * start)
    while at >= 0 and at % 8:
        at = hay.find(needle, at + 1)
    return at // 8 if at >= 0 else -1


def sound(got, want):
    """Whatever was lost: each piece did run as it is, and in this order. Returns how many instructions there are."""
    n = 0
    for tid, parts in got.items():
        at = 0
        for part in filter(None, parts):
            where = find(part, want.get(tid, []), at)
            assert where >= 0, f"thread {tid}: {len(part)} instructions from {part[0]:x} on did not run so after {at}"
            at = where + len(part)
            n += len(part)
    return n


def with_failure(case, ran):
    """What ran, and last of all, in the thread that failed, the instruction that it died of."""
    failure = case.info()["failure"]
    return {tid: ips + [int(failure["ip"], 16)] if tid == failure["tid"] else ips for tid, ips in ran.items()}


def ends_where_it_failed(case, got):
    failure = case.info()["failure"]
    last = [part for part in got[failure["tid"]] if part][-1][-1]
    assert last == int(failure["ip"], 16), f"the last is {last:x}, the failure at {failure['ip']}"


def symbol(program, name):
    """[start, end) of a function."""
    for line in subprocess.run(["nm", "-S", os.path.join(programs, program)], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[3] == name:
            return int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16)
    raise AssertionError(f"no {name} in {program}")


def within(ran, ranges):
    return {tid: [ip for ip in ips if any(a <= ip < b for a, b in ranges)] for tid, ips in ran.items()}


# ---- The cases ----

def equal(case, threads=1, status=0):
    assert case.status == status, case.text("err")
    want = case.truth()
    assert len(want) == threads, f"{len(want)} threads ran"
    same(whole(case.bundle), want)
    case.says("nothing lost")
    return want


def check_full(case):
    equal(case)
    case.says("17.0 MiB of memory locked")
    case.says("recording took")


def check_threads(case):
    equal(case, threads=9)
    assert len(case.bytes()) == 2, "one CPU only"


def check_fork_exec(case):
    equal(case, threads=4)
    case.says("4 threads in 4 processes")
    assert "from the child" in case.text("out")


def check_signals(case):
    equal(case)


def check_snapshot(case):
    equal(case, threads=9)


def check_wrapped(case):
    assert case.status == 0
    got, _ = pieces(case.bundle)
    assert sound(got, case.truth()) > 100
    assert set(case.losses()) == {"ring_wrapped"}
    for size in case.bytes().values():
        assert size <= 16384


def check_segv(case):
    assert case.status == 139, case.text("err")
    same(whole(case.bundle), with_failure(case, case.truth()))
    ends_where_it_failed(case, pieces(case.bundle)[0])
    case.says("nothing lost")


def check_segv_wrapped(case):
    assert case.status == 139
    got, _ = pieces(case.bundle)
    assert sound(got, with_failure(case, case.truth())) > 100
    assert "ring_wrapped" in case.losses()
    ends_where_it_failed(case, got)


def check_settings(case):
    equal(case)


def filtered(case, ranges):
    assert case.status == 0, case.text("err")
    want = within(case.truth(), ranges)
    assert all(len(ips) > 1000 for ips in want.values())
    same(whole(case.bundle), want)


def check_function_filter(case):
    filtered(case, [symbol("switches-static", "step")])


def check_joined_filters(case):
    spans = sorted(symbol("switches-static", name) for name in ("a", "b", "c", "step"))
    gaps = [(spans[i + 1][0] - spans[i][1], i) for i in range(3)]
    while len(spans) > 2:
        gaps = [(spans[i + 1][0] - spans[i][1], i) for i in range(len(spans) - 1)]
        i = min(gaps)[1]
        spans[i:i + 2] = [(spans[i][0], spans[i + 1][1])]
    case.says("4 ranges were joined to the 2 filters")
    filtered(case, spans)


def check_no_filters(case):
    case.says("this CPU has no address filters: all code is recorded")
    equal(case)


def refused(case, *words):
    assert case.status == 125
    for word in words:
        case.says(word)
    assert not os.path.exists(case.bundle), "a bundle of nothing is left"
    assert not case.truth(), "it ran all the same"


def check_filter_outside(case):
    refused(case, "not within the code of")


def check_no_such_setting(case):
    refused(case, "Invalid argument", "leave out --pt")


def check_watched(case):
    """Each access of the variable, and no other, in the order of the program."""
    equal(case)
    accesses = [a for r in case.records("accesses") for a in r["accesses"]]
    at, end = symbol("watched", "main")
    assert len(accesses) == 5, accesses
    base = int(accesses[0]["ip"], 16) & ~0xfff
    places = [int(a["ip"], 16) - base + (at & ~0xfff) for a in accesses]
    assert places == sorted(places) and all(at < p <= end for p in places), (places, at, end)


def check_overflow(case):
    got, lost = pieces(case.bundle)
    want = case.truth()
    n = sound(got, want)
    # Also where the thread enters the kernel while packets are lost: the OVF stands alone then, and takes the place of the TIP.PGD.
    assert lost and all("overflow" in line for line in lost), lost[:3]
    assert n < sum(map(len, want.values()))


def check_lost(case):
    assert case.status == 143, case.text("err")
    causes = case.losses()
    assert "aux_truncated" in causes and "sideband" in causes, causes
    got, lost = pieces(case.bundle)
    want = case.truth()
    assert sound(got, want) > 100, "next to nothing is left"
    assert any("AUX truncated" in line for line in lost), lost[:3]
    assert any(any(parts[1:]) for parts in got.values()), "nothing after the loss: the trace did not go on"
    case.says("its ring was full")


def joined(case, threads):
    want = case.truth()
    assert len(want) == threads, f"{len(want)} threads ran"
    same(whole(case.bundle), want)
    case.says("the program goes on")


def check_attach(case):
    joined(case, 2)
    assert case.text("alive") == "alive\n"


def check_pids(case):
    joined(case, 4)
    case.says("4 threads in 2 processes")


def check_cgroup(case):
    joined(case, 2)


def check_busy(case):
    assert case.status == 125
    case.says("something else traces this program")
    case.says("end the other tracer")


def check_perf(case):
    """The same program by perf record and by etch, at the same addresses: the same instructions."""
    assert case.status == 0
    start, _ = symbol("switches-static", "_start")
    ran = []
    os.environ["HOME"] = case.path(".")  # perf's build-id cache
    for file in case.path("perf.data"), case.bundle:
        (_, ips), = whole(file).items()
        ran.append({0: ips[ips.index(start):]})  # from where env(1) becomes the program
    assert len(ran[1][0]) > 100000
    same(*ran)


def check_rights(case):
    case.says("perf_event_paranoid", "refused")
    case.says("present, 2 address filters, but not usable: cannot trace with Intel PT: Permission", "doctor_refused")
    case.says("rings of 256 KiB rather than 4096 on each CPU", "smaller")
    case.says("648.0 KiB of memory locked", "smaller")
    case.says("perf_event_mlock_kb=", "large")
    case.says("usable", "doctor")
    case.says("rings of 256 KiB", "doctor")


def check_cycles(case):
    results = case.text("results").splitlines()
    assert len(results) == int(cycles) + int(crashes), f"{len(results)} recordings"
    for i, line in enumerate(results):
        assert line.startswith("0 " if i < int(cycles) else "139 "), f"recording {i}: {line}"
        assert "nothing lost" in line, line


def check_for_cores(case):
    """The rings that etch core asked for: what ran is what they hold, and the sketch of the core shows it."""
    assert case.status == 0, case.text("err")
    case.says("2 traces of crashed processes")
    assert case.text("list").count("with a trace of Intel PT") == 2, case.text("list")
    want = case.truth()
    cores = sorted(os.path.join(case.path("cores"), f) for f in os.listdir(case.path("cores")) if f.endswith(".core"))
    assert len(cores) == 2, cores
    for core in cores:
        pid = int(core.rsplit(".", 3)[1])
        got, _ = pieces(core[:-5] + ".pt.etch")
        assert sum(map(len, got[pid])) > 100, got[pid]
        assert sound(got, want) > 100
        shown = case.path("sketch.json")
        run("sketch", os.path.join(share, "later"), "--core", core, "--json", shown)
        with open(shown, encoding="utf-8") as file:
            sketch = json.load(file)
        assert sketch["source"] == "pt", sketch["source"]
        functions = [s["place"]["function"] for s in sketch["steps"]]
        assert "find" in functions and functions[-1] == "sum", functions


def check_diagnose(case):
    """The lookup that finds nothing: the crash tells of the pointer, control flow that its last line runs in failing runs only."""
    assert case.status == 0, case.text("err")
    sketch = json.loads(case.text("sketch.json"))
    assert sketch["source"] == "pt", sketch["source"]
    best = sketch["predictors"][0]
    assert best["f"] > 0.99 and best["text"].startswith("u == 0 at main "), best
    assert any(p["f"] > 0.99 and p["kind"] in ("branch", "executed") and p["statements"][0]["function"] == "find"
               for p in sketch["predictors"]), sketch["predictors"]
    assert "find" in [s["place"]["function"] for s in sketch["steps"]], sketch["steps"]


def check_diagnose_order(case):
    """Two threads: watches show that one reads before the other writes."""
    assert case.status == 0, case.text("err")
    sketch = json.loads(case.text("sketch.json"))
    best = sketch["predictors"][0]
    assert best["f"] > 0.99 and best["kind"] == "order" and "config" in best["text"], best


LONG = ["diagnose_order"]  # minutes, and only where asked for by name


def main():
    failed = 0
    cases = {name[6:]: check for name, check in globals().items() if name.startswith("check_")}
    wanted = sys.argv[6:] or [name for name in cases if name not in LONG]
    for name in wanted:
        case = Case(name)
        try:
            cases[name](case)
            assert case.text("live").split() == ["events", "0", "buffers", "0"], f"left behind: {case.text('live')}"
        except (AssertionError, subprocess.CalledProcessError, OSError, KeyError, ValueError, StopIteration) as error:
            print(f"FAIL {name}: {error}" + (f"\n{error.stderr}" if hasattr(error, "stderr") else ""))
            failed += 1
    print(f"{len(list(wanted)) - failed} of {len(list(wanted))} cases hold")
    return 1 if failed else 0


sys.exit(main())
