#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cpp_real.sh BUILD: four real C++ programs from Debian's sources, each by its own build system: do their test suites pass built with
# clang, with etch c++, with etch c++ --record, and recording; and does etch diagnose find the bug that tests/real/ plants in each?
# ETCH_BENCH_PROGRAMS: some of them. ETCH_BENCH_STEPS: suites, bugs, or both. ETCH_BENCH_TIME: seconds a diagnosis may take (60).
# ETCH_BENCH_SOURCE: soft, vpt or both. ETCH_BENCH_SOURCES keeps sources. Fails where a suite or a failing place is wrong.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here")
work=$(mktemp -d)
. "$here/debian.bash"
. "$here/cpp_programs.bash"
trap 'rm -rf "$work"; forget_sources' EXIT
wrong=0

# stop MESSAGE: with what was last logged
stop() {
  tail -n 20 "$work/log" >&2
  echo "cpp_real.sh: $1" >&2
  exit 1
}

# suites PROGRAM: a line of the table
suites() {
  local how plain="" passed line=""
  for how in plain etch record recording; do
    unset ETCH_RING
    if [ $how = recording ]; then
      mkdir -p "$work/rings" && export ETCH_RING=$work/rings
    else
      cpp_build "$1" $how >"$work/log" 2>&1 || stop "cannot build $1 ($how)"
    fi
    passed=$(cpp_test "$1" "$work/$1.${how/recording/record}") || true
    line="$line $(printf '%9s' "${passed:-FAILED}")"
    plain=${plain:-$passed}
    [ "${passed:-no}" = "$plain" ] || wrong=1
  done
  unset ETCH_RING
  rm -rf "$work/rings" "$work/$1".{plain,etch,record}
  printf '%-12s%s\n' "$1" "$line"
}

# bugs PROGRAM: planted, and diagnosed
bugs() {
  local from began
  cpp_plant "$1" >"$work/log" 2>&1 || stop "cannot build $1 with its bug"
  for from in ${ETCH_BENCH_SOURCE:-soft}; do
    began=$SECONDS
    if cpp_diagnose "$1" "$from" "${ETCH_BENCH_TIME:-60}" && grep -qF "$(cpp_failing "$1")" "$work/$1.sketch"; then
      printf '%s, %s: %d s;%s\n' "$1" "$from" $((SECONDS - began)) "$(sed -n 's/^ \(slice .*\)/ \1/p' "$work/$1.sketch")"
    else
      printf '%s, %s: WRONG, not %s\n' "$1" "$from" "$(cpp_failing "$1")"
      wrong=1
    fi
    sed -n '/^ etch /,/^$/p; /^ CAUSE/,/^$/p' "$work/$1.sketch" | awk 'NF' | head -n 5
  done
}

programs=${ETCH_BENCH_PROGRAMS:-$cpp_programs}
steps=${ETCH_BENCH_STEPS:-suites bugs}
for program in $programs; do cpp_fetch "$program"; done
case $steps in *suites*)
  printf 'tests passed    clang      etch  --record recording\n'
  for program in $programs; do suites "$program"; done
  ;;
esac
case $steps in *bugs*)
  for program in $programs; do bugs "$program"; done
  ;;
esac
exit $wrong
