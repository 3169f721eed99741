#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real C++ programs from Debian's sources, built with etch c++ --record by their own build systems, each with a planted bug that etch
# diagnose must place: bench/cpp_real.sh with the two that build quickest, where the sources are at hand (ETCH_BENCH_SOURCES names a
# folder that keeps them). ETCH_LONG=1: all four, and their test suites.
. "$(dirname "$0")/lib.sh"
[ -n "${ETCH_BENCH_SOURCES:-}" ] || skip "ETCH_BENCH_SOURCES names no folder with Debian's sources"
for tool in cmake make patch; do command -v $tool >/dev/null || skip "no $tool here"; done
if [ "${ETCH_LONG:-0}" = 0 ]; then
  export ETCH_BENCH_STEPS=bugs ETCH_BENCH_PROGRAMS="pugixml cppunit" ETCH_BENCH_TIME=40
fi
for program in ${ETCH_BENCH_PROGRAMS:-pugixml cppunit libjsoncpp spdlog}; do
  compgen -G "$ETCH_BENCH_SOURCES/$program-*/" >/dev/null || skip "$ETCH_BENCH_SOURCES has no $program"
done
bash "$ETCH_SOURCE/bench/cpp_real.sh" "$ETCH_BUILD" || fail "a suite or a failing place is wrong"
