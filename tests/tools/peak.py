# SPDX-License-Identifier: MIT
"""peak.py MIB COMMAND...: runs the command; says how much memory it took at most, and fails beyond that many MiB."""
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(f"peak {peak} MiB, status {status}", file=sys.stderr)
sys.exit(1 if peak > int(sys.argv[1]) or status not in (0, 1) else 0)
