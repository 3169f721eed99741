#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ci/explore.sh TESTS: runs each test under etch explore, in any CI. TESTS is a file with one command a line; # begins a comment. The
# programs were built by etch cc. Results go to the folder $ETCH_CI_OUT (etch-ci), by the number of the line:
#   N.schedule.etch   the failing run, for etch replay
#   N.sarif, N.html   the sketch of the failure
#   N.log             what etch printed
# ETCH_CI_SCHEDULES (200) schedules are tried for each test, from the seed ETCH_CI_SEED (0) on, for ETCH_CI_TIME (300) seconds at most.
# Exit status: 0 no test failed, 1 a test failed, 2 a test could not be tried.
set -euo pipefail
tests=${1:-}
[ -r "$tests" ] || { echo "usage: ci/explore.sh TESTS (a file with one command a line)" >&2; exit 2; }
out=${ETCH_CI_OUT:-etch-ci}
mkdir -p "$out"
failed=0 broken=0 n=0

# draw N PROGRAM: the sketch of a failure. A failure without one is still a failure.
draw() {
  etch sketch "$2" "$out/$1.runs"/*.etch --sarif "$out/$1.sarif" --html "$out/$1.html" || echo "no sketch could be drawn"
}

# try N WORD...: 0 no failure, 1 a failure, 2 neither
try() {
  local number=$1 status=0
  shift
  etch explore --schedules "${ETCH_CI_SCHEDULES:-200}" --seed "${ETCH_CI_SEED:-0}" --time "${ETCH_CI_TIME:-300}" \
    --bundles "$out/$number.runs" -o "$out/$number.schedule.etch" -- "$@" >"$out/$number.log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    draw "$number" "$1" >>"$out/$number.log" 2>&1
    return 1
  fi
  [ "$status" -eq 1 ] && grep -q '^no failure in [1-9]' "$out/$number.log" || return 2
}

while IFS= read -r line || [ -n "$line" ]; do
  n=$((n + 1))
  case $line in '' | '#'*) continue ;; esac
  status=0
  eval "try $n $line" </dev/null || status=$?
  case $status in
  0) echo "passes  $line" ;;
  1) echo "FAILS   $line"; cat "$out/$n.log"; failed=$((failed + 1)) ;;
  *) echo "UNKNOWN $line"; cat "$out/$n.log"; broken=$((broken + 1)) ;;
  esac
done <"$tests"
echo "etch: $failed failed, $broken could not be tried; results in $out"
[ "$broken" -eq 0 ] || exit 2
[ "$failed" -eq 0 ] || exit 1
