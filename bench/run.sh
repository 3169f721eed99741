#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh BUILD [NAME...]: every measured table, or the named ones. Ratios are against a peer in the same run.
set -eu
build=$1
shift
here=$(dirname "$0")
echo "machine: $(nproc) CPUs, $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), $(date -u +%F)"
tables=$(cd "$here" && ls ./*.sh | sed 's/^\.\///; s/\.sh$//' | grep -vx run)
for table in ${*:-$tables}; do
  printf '\n== %s\n' "$table"
  bash "$here/$table.sh" "$build"
done
