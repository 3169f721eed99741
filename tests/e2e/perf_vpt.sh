#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two decoders that share no line: what `perf script` makes of our export of a vpt recording is what `etch decode` makes of the
# recording itself, branch for branch, thread by thread.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_BUILD/tests/programs
command -v perf >/dev/null || skip "no perf"
need_vpt
cd "$work"
for n in loops recursion callbacks callbacks-nopie switches jumps threads threads-static forks loader exceptions \
  exceptions-static signals-static segv segv-static aborts crash wild; do
  "$ETCH" record --source vpt -o $n.etch -- "$programs/$n" >/dev/null 2>message || [ $? -ne 125 ] || { cat message; exit 1; }
  "$ETCH" decode $n.etch --as perf-data -o $n.data
  # Threads run beside one another and perf shows them so: each is compared in its own order.
  "$ETCH" decode $n.etch --as branch --fields tid,ip,addr | awk '{print $1, $2, $3}' | sort -s -k1,1n >ours
  perf script -i $n.data --itrace=b -F tid,ip,addr 2>/dev/null | awk '{print $1, $2, $4}' | sort -s -k1,1n >theirs
  [ -s ours ]
  cmp ours theirs || { diff ours theirs | head; exit 1; }
  echo "$n: $(wc -l <ours) branches of $(cut -d' ' -f1 ours | uniq | wc -l) threads, the same from both"
done
