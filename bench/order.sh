#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# order.sh BUILD: the merge of a million and of ten million simulated events. Goals: below 2 s and below 25 s, memory linear.
set -eu
for events in ${ETCH_BENCH_EVENTS:-1000000 10000000}; do
  "$1/bench/bench_order" "$events"
done
