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
"$build/etch" cc -g -O0 -pthread "$here/../corpus/null-check/bug.c" -o "$share/null-check"
"$build/etch" cc -g -O0 -pthread "$here/../corpus/order-init/bug.c" -o "$share/order-init"
"$build/etch" cc -g -O0 "$here/programs/later.c" -o "$share/later"
bash "$here/run-in-guest" -o "$build/rig" -s "$share" -t "${RIG_SECONDS:-840}" "$here/pt-guest.sh" "$build" "$cycles" "$crashes" "$@" ||
  status=$?
[ $status -ne 77 ] || exit 77
python3 "$here/pt_check.py" "$build/etch" "$build/tests/programs" "$share" "$cycles" "$crashes" "$@" || exit 1
exit $status
