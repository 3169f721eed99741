#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The software recorder's gate on real code: bench/soft_real.sh with the smallest of its programs, where Debian's sources are at hand
# (ETCH_BENCH_SOURCES names a folder that keeps them). ETCH_LONG=1: with all of them.
. "$(dirname "$0")/lib.sh"
[ -n "${ETCH_BENCH_SOURCES:-}" ] || skip "ETCH_BENCH_SOURCES names no folder with Debian's sources"
[ "${ETCH_LONG:-0}" != 0 ] || export ETCH_BENCH_PROGRAMS=bzip2
need_vpt
bash "$ETCH_SOURCE/bench/soft_real.sh" "$ETCH_BUILD" || fail "what was replayed is not what ran"
