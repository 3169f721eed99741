#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""first_look.py ETCH SET OUT [NAME...]: the first answers of etch diagnose on the programs of tests/heldout/SET whose
`ideal` file has `cause-lines`. An answer is right if its statements have all of these lines. OUT keeps what etch
printed. ETCH_OPTIMISE: -O0 (default) or another level; ETCH_SECONDS: for each program (60)."""
import json
import os
import shutil
import subprocess
import sys
import time

etch, programs, out = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
level, seconds = os.environ.get("ETCH_OPTIMISE", "-O0"), os.environ.get("ETCH_SECONDS", "60")


def read_ideal(path):
    with open(path, encoding="utf-8") as file:
        pairs = (line.split(":", 1) for line in file if ":" in line)
        return {key.strip(): value.strip() for key, value in pairs}


def build(source, folder):
    plus = source.endswith("cpp")
    compiler = ["c++", "-std=c++17"] if plus else ["cc"]
    shutil.copy(source, folder)
    subprocess.run([etch, *compiler, "--record", level, "-g", "-pthread", os.path.basename(source), "-o", "prog"],
                   cwd=folder, check=True)


def diagnose(ideal, folder):
    """Returns the sketch, or {} without one, and the seconds that etch took."""
    command = [etch, "diagnose", "--timeout", "4", "--time", seconds, "--json", "sketch.json"]
    if ideal["fails"] == "output":
        with open(os.path.join(folder, "check.sh"), "w", encoding="utf-8") as file:
            file.write(ideal["check"] + "\n")
        command += ["--fails-if", "sh " + os.path.join(os.path.abspath(folder), "check.sh")]
    began = time.monotonic()
    with open(os.path.join(folder, "printed"), "w", encoding="utf-8") as printed:
        try:
            subprocess.run([*command, "--", "./prog"], cwd=folder, stdin=subprocess.DEVNULL, stdout=printed,
                           stderr=printed, timeout=5 * float(seconds), check=False)
        except subprocess.TimeoutExpired:
            print("etch did not end", file=printed)
    took = time.monotonic() - began
    path = os.path.join(folder, "sketch.json")
    if not os.path.exists(path):
        return {}, took
    with open(path, encoding="utf-8") as file:
        return json.load(file), took


right = part = count = 0
for name in sorted(os.listdir(programs)):
    source = next((p for p in (os.path.join(programs, name, f) for f in ("bug.c", "bug.cpp")) if os.path.exists(p)), None)
    if not source or (sys.argv[4:] and name not in sys.argv[4:]):
        continue
    ideal = read_ideal(os.path.join(programs, name, "ideal"))
    work = os.path.join(out, name)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    build(source, work)
    sketch, took = diagnose(ideal, work)
    first = (sketch.get("predictors") or [{}])[0]
    wanted = {int(line) for line in ideal["cause-lines"].replace(",", " ").split()}
    found = {s["line"] for s in first.get("statements", [])}
    count, right, part = count + 1, right + (wanted <= found), part + bool(wanted & found and not wanted <= found)
    verdict = "right" if wanted <= found else "part" if wanted & found else "wrong"
    print(f"{name:16} {ideal['fails']:10} {verdict:6} {first.get('sureness', '-'):10} {took:4.0f} s  "
          f"{first.get('text', 'no answer')}", flush=True)
print(f"{right} right, {part} in part, of {count}")
