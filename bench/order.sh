#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# order.sh BUILD: the merge of a million and of ten million simulated events (goals: below 2 s and below 25 s, memory linear);
# how much of a simulated run stays unordered, by its length (goals: 1 % of synchronisation, 0.1 % of conflicting accesses);
# a token handed over 100,000 times through a watched variable, recorded and ordered (goal: none wrong).
set -eu
for events in ${ETCH_BENCH_EVENTS:-1000000 10000000}; do
  "$1/bench/bench_order" "$events"
done
ETCH_SIM_RUNS=${ETCH_SIM_RUNS:-1000} "$1/tests/unit_order_sim" 2>/dev/null | grep unordered
build=$(cd "$1" && pwd)
ETCH=$build/etch ETCH_SOURCE=$(cd "$(dirname "$0")/.." && pwd) ETCH_BUILD=$build ETCH_CC=clang-19 \
  ETCH_TOKENS=${ETCH_TOKENS:-100000} bash "$(dirname "$0")/../tests/e2e/order_token.sh"
