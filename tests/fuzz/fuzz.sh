#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fuzz.sh TARGET SECONDS [-OPTION=VALUE]... [SEED-COMMAND...]: runs a libFuzzer target on seeds of its own making for that
# long, or for ETCH_FUZZ_SECONDS. Any crash, leak, hang (10 s for one input), growth beyond 1 GiB or single allocation beyond
# 512 MiB fails, and the input is printed in base64. Options are libFuzzer's.
set -eu
target=$1 seconds=${ETCH_FUZZ_SECONDS:-$2}
shift 2
options=()
while [ $# -gt 0 ] && [ "${1#-}" != "$1" ]; do
  options+=("$1")
  shift
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/corpus"
[ $# -eq 0 ] || "$@" "$dir/corpus"
echo "seeds: $(find "$dir/corpus" -type f | wc -l)"
cd "$dir"
if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=65536 -print_final_stats=1 "${options[@]}" \
  corpus >log 2>&1; then
  tail -n 60 log
  for f in crash-* leak-* timeout-* oom-*; do
    [ -e "$f" ] && { echo "input $f:"; base64 "$f" | head -c 20000; }
  done
  exit 1
fi
grep -E 'stat::(number_of_executed_units|peak_rss_mb)|cov:' log | tail -n 3
