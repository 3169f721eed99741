#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs commands of etch again and again, each time with another allocation or another write made to fail (fail_calls.c).
Whatever fails, etch ends by itself, says in words what went wrong, and calls nothing complete that is not.

usage: failures.py LIBRARY ETCH FOLDER MOST CASE...     FOLDER has p, run.etch; MOST runs of each kind, 0: all
"""
import json
import os
import shutil
import subprocess
import sys

library, etch, folder, most = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
os.chdir(folder)
problems = []


def run(words, program="etch", **fail):
    env = {**os.environ, "LD_PRELOAD": library, "FAIL_PROGRAM": program, "ETCH_LOG": "error"}
    env.update({k: str(v) for k, v in fail.items()})
    try:
        return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None


def kinds(path):
    """How many records of each kind a whole bundle has; None where it is not whole."""
    got = subprocess.run([etch, "info", "--json", path], capture_output=True)
    if got.returncode:
        return None
    info = json.loads(got.stdout)
    if not info["complete"]:
        return None
    return {k: info["kinds"][k]["records"] for k in ("host", "program", "image", "thread", "stream", "outcome", "failure", "slice", "plan") if k in info["kinds"]}


class Case:
    """A command, what it must print or write, and what may be left of that when a call failed."""

    def __init__(self, name, words, output=None, kind="text", program="etch", memory=True):
        self.name, self.words, self.output, self.kind, self.program, self.memory = name, words, output, kind, program, memory

    def clean(self):
        for name in os.listdir("."):
            if self.output and name.startswith(self.output):
                shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)

    def result(self):
        if not self.output or not os.path.exists(self.output):
            return None
        if self.kind == "bundle":
            return kinds(self.output)
        with open(self.output, "rb") as file:
            return file.read()

    def measure(self):
        self.clean()
        if os.path.exists("counts"):
            os.unlink("counts")
        good = run(self.words, self.program, FAIL_COUNT="counts")
        assert good.returncode == 0, (self.name, good)
        self.good, self.wanted = good, self.result()
        assert not self.output or self.wanted, self.name
        with open("counts") as file:
            return dict(zip(("FAIL_MEMORY", "FAIL_WRITE"), map(int, file.read().split())))

    def judge(self, got):
        if got is None:
            return "it did not end"
        if got.returncode < 0 or got.returncode in (132, 134, 135, 136, 139):
            return f"signal, status {got.returncode}"
        result = self.result()
        if got.returncode != 0:
            if not got.stderr.strip():
                return f"status {got.returncode}, and not a word"
            last_words = b"cannot write the output" in got.stderr and result == self.wanted
            if result is not None and self.kind == "bundle" and not last_words:
                return f"status {got.returncode}, and {self.output} reads as complete"
            if result is not None and self.kind != "bundle" and result != self.wanted:
                return f"status {got.returncode}, and a part of {self.output} is left"
            left = [n for n in os.listdir(".") if self.output and n.startswith(self.output) and n != self.output]
            return f"left behind: {left}" if left and self.kind != "bundle" else None
        told = b"loss" in got.stderr or b"lost during" in got.stderr
        if self.kind == "bundle" and not told and result != self.wanted:
            return f"nothing lost, it says, and has {result}, not {self.wanted}"
        if self.kind == "text" and self.output and result != self.wanted:
            return f"status 0, and {self.output} is not what it should be"
        if not self.output and got.stdout != self.good.stdout and not told and b"-- " not in got.stdout:
            return "status 0, and the output is not what it should be"
        return None

    def loop(self, which, count, errors):
        step = max(1, count // most) if most else 1
        for n in range(1, count + 1, step):
            for error in errors:
                self.clean()
                fail = {which: n, "FAIL_ERRNO": error}
                got = run(self.words, self.program, **fail)
                why = self.judge(got)
                if why:
                    said = got.stderr.decode(errors="replace").strip()[-300:] if got else ""
                    problems.append(f"{self.name}, {which}={n} of {count}, errno {error}: {why}: {said}")
        return len(range(1, count + 1, step)) * len(errors)


record = [etch, "record", "--clock", "0", "-o", "out.etch"]
cases = {
    c.name: c
    for c in (
        Case("info", [etch, "info", "run.etch"]),
        Case("info-json", [etch, "info", "--json", "run.etch"]),
        Case("info-records", [etch, "info", "--records", "run.etch"]),
        Case("decode", [etch, "decode", "--jobs", "1", "run.etch"]),
        Case("decode-line", [etch, "decode", "--jobs", "1", "--as", "line", "run.etch"]),
        Case("decode-call", [etch, "decode", "--jobs", "1", "--as", "call", "run.etch"]),
        Case("decode-chrome", [etch, "decode", "--jobs", "1", "--as", "chrome", "-o", "out.json", "run.etch"], "out.json"),
        Case("record", [*record, "--source", "soft", "--", "./p"], "out.etch", "bundle"),
        Case("record-none", [*record, "--source", "none", "--", "./p"], "out.etch", "bundle"),
        Case("sketch", [etch, "sketch", "./p", "fail.etch", "run.etch", "--html", "out.html"], "out.html", program="etch-llvm", memory=False),
        Case("sketch-json", [etch, "sketch", "./p", "fail.etch", "--json", "out.js"], "out.js", program="etch-llvm", memory=False),
        Case("sketch-sarif", [etch, "sketch", "./p", "fail.etch", "--sarif", "out.sarif"], "out.sarif", program="etch-llvm", memory=False),
        Case("slice", [etch, "slice", "./p", "--failure", "fail.etch", "--plan", "out.plan"], "out.plan", "bundle", program="etch-llvm", memory=False),
    )
}
for name in sys.argv[5:]:
    case, runs = cases[name], 0
    counts = case.measure()
    if case.memory:
        runs += case.loop("FAIL_MEMORY", counts["FAIL_MEMORY"], [12])
    runs += case.loop("FAIL_WRITE", counts["FAIL_WRITE"], [28, 5] if case.memory or not most else [28])
    print(f"{name}: {counts['FAIL_MEMORY']} allocations, {counts['FAIL_WRITE']} writes; {runs} runs", flush=True)
for line in problems[:40]:
    print("PROBLEM", line, file=sys.stderr)
sys.exit(f"{len(problems)} problems" if problems else 0)
