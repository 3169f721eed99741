# SPDX-License-Identifier: MIT
"""long.py BUILD MINUTES [NAME]: the fuzz targets of a build (those whose name has NAME in it), each for so many minutes, as
many at a time as there are CPUs. Fails where one of them finds something; what it printed is then shown."""
import concurrent.futures
import json
import os
import subprocess
import sys

build, minutes, name = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or [""])[0]
listed = subprocess.run(["ctest", "--test-dir", build, "-L", "fuzz", "--show-only=json-v1"], capture_output=True, check=True)
tests = [t for t in json.loads(listed.stdout)["tests"] if name in t["name"]]
if not tests:
    sys.exit(f"no fuzz target has '{name}' in its name")


def run(test):
    environment = dict(os.environ, ETCH_FUZZ_SECONDS=str(60 * minutes))
    done = subprocess.run(test["command"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{test['name']}: {'nothing found' if done.returncode == 0 else 'FOUND SOMETHING'}\n{done.stdout}", flush=True)
    return done.returncode == 0


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    sys.exit(0 if all(list(pool.map(run, tests))) else 1)
