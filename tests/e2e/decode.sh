#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch decode on real captures, as a user would ask: every instruction and branch against the lists that came with them,
# the same for any number of workers; windows; what it says of losses.
set -eu
data=${ETCH_PTDATA:-$ETCH_SOURCE/../shared/ptdata}
[ -d "$data" ] || { echo "skipped: no real captures here (ETCH_PTDATA)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

same_ips() { # EXPECTED ARG...
  local expected=$1
  shift
  "$ETCH" decode "$@" --as insn --fields ip >"$dir/got" 2>"$dir/said"
  cmp "$dir/got" "$expected" || fail "$*"
}

for jobs in 1 2 3 8; do
  same_ips "$data/lldb-single/expected.ips" "$data/lldb-single/trace.json" --jobs $jobs
  same_ips "$data/lldb-multi-file/expected.ips" "$data/lldb-multi-file/multi-file-no-ld.json" --jobs $jobs
  grep -q '1 loss .*: unmapped code (1) ' "$dir/said" || fail "the gap is not counted by its cause"
  for pair in 45:3497497 51:3497496; do
    zcat "$data/lldb-multi-core/expected.${pair%:*}.ips.gz" >"$dir/want"
    same_ips "$dir/want" "$data/lldb-multi-core" --thread "${pair#*:}" --jobs $jobs
  done
  for perf in "$data"/hase-*/*.perf; do
    "$ETCH" decode "$perf" --as branch --fields ip,addr --jobs $jobs >"$dir/got" 2>/dev/null
    tr -d '\r' <"${perf%.perf}.trace" | tr '\t' ' ' | cmp - "$dir/got" || fail "$perf"
  done
done

# The gap is in its place for people, with its address.
"$ETCH" decode "$data/lldb-multi-file/multi-file-no-ld.json" >"$dir/people"
grep -q -- '-- unmapped code at 7ffff7df1950' "$dir/people" || fail "no gap for people"
[ "$(grep -c -- ' -- ' "$dir/people")" = 1 ] || fail "more than one gap"

# Kernel and user on one CPU, no binaries: nothing is made up.
"$ETCH" decode "$data/quipper/perf.data.intel_pt-4.14" --fields ip >"$dir/got" 2>"$dir/said"
[ ! -s "$dir/got" ] || fail "instructions without code"
grep -q 'loss' "$dir/said" || fail "nothing said of losses"
# The kernel comes back to user code 211 times: each is told, with its address.
"$ETCH" decode "$data/quipper/perf.data.intel_pt-4.14" | grep -- '-- unmapped code at 7f.*byte [0-9]' | sort -u >"$dir/people"
[ "$(wc -l <"$dir/people")" -ge 211 ] || fail "$(wc -l <"$dir/people") entries to missing code were told, not 211"

# Windows.
"$ETCH" decode "$data/lldb-multi-core" --thread 3497497 --fields ip --last 1000 >"$dir/last"
zcat "$data/lldb-multi-core/expected.45.ips.gz" | tail -n 1000 | cmp - "$dir/last" || fail "--last"
"$ETCH" decode "$data/lldb-multi-core" --thread 3497497 --fields time,ip >"$dir/timed"
cut=$(tail -n 1 "$dir/timed" | sed 's/\.\..*//')
"$ETCH" decode "$data/lldb-multi-core" --thread 3497497 --fields ip --from $((cut + 1)) >"$dir/late"
[ "$(wc -l <"$dir/late")" = "$(grep -c "^$cut" "$dir/timed")" ] || fail "--from"
"$ETCH" decode "$data/lldb-multi-core" --thread 3497497 --fields ip --to $((cut - 1)) >"$dir/early"
[ $(($(wc -l <"$dir/early") + $(wc -l <"$dir/late"))) = 61825 ] || fail "--from and --to leave something out"

# Usage.
status() { "$ETCH" decode "$@" >/dev/null 2>&1 && echo 0 || echo $?; }
[ "$(status)" = 2 ] && [ "$(status --as nonsense x)" = 2 ] && [ "$(status --fields addr x)" = 2 ] || fail "usage"
[ "$(status /nonexistent)" = 1 ] && [ "$(status /dev/null)" = 1 ] || fail "what cannot be read"
echo "real captures: all as expected"
