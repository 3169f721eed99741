#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tests/rig/pt.sh BUILD [CASE...]: `etch record --source pt` in the guest, judged on the host. ETCH_RIG_CYCLES and
# ETCH_RIG_CRASHES: how many recordings and crashes in a row, to see that nothing is left behind (10 and 5; 50 and 20 take
# half a minute longer).
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
shift
cycles=${ETCH_RIG_CYCLES:-10} crashes=${ETCH_RIG_CRASHES:-5} status=0
share=$(mktemp -d)
trap 'rm -rf "$share"' EXIT

# in_guest SECONDS [CASE...]: all cases in one boot, with nothing left of an earlier one
in_guest() {
  local seconds=$1
  shift
  rm -rf "${share:?}"/*
  "$build/etch" cc -g -O0 -pthread "$here/../corpus/null-check/bug.c" -o "$share/null-check"
  "$build/etch" cc -g -O0 -pthread "$here/../corpus/order-init/bug.c" -o "$share/order-init"
  "$build/etch" cc -g -O0 "$here/programs/later.c" -o "$share/later"
  bash "$here/run-in-guest" -o "$build/rig" -s "$share" -t "$seconds" "$here/pt-guest.sh" "$build" "$cycles" "$crashes" "$@"
}

# An emulated guest can stand still for good when the machine under it is paused or moved. It is booted once more then.
in_guest "${RIG_SECONDS:-600}" "$@" || status=$?
if [ $status -eq 124 ]; then
  echo "once more: the guest was not done within its time"
  status=0
  in_guest "${RIG_SECONDS:-900}" "$@" || status=$?
fi
[ $status -ne 77 ] || exit 77
python3 "$here/pt_check.py" "$build/etch" "$build/tests/programs" "$share" "$cycles" "$crashes" "$@" || exit 1
exit $status
