#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run in the lab has complete control flow: the lab build has the software recorder.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
corpus=$ETCH_SOURCE/tests/corpus
cd "$work"
export XDG_CACHE_HOME=$work/cache

# Each thread's lines, in a run with and without a recorder at the same points.
cat >count.cc <<'C'
#include <mutex>
#include <thread>
static std::mutex lock;
static int total;
static void add(int n)
{
    for (int i = 0; i < n; i++) {
        std::lock_guard<std::mutex> guard(lock);
        total += n; // each
    }
}
int main()
{
    std::thread five(add, 5), seven(add, 7);
    five.join();
    seven.join();
    return total == 74 ? 3 : 1; // 3 is the failure that etch explore looks for
}
C
for level in -O0 -O2; do
  "$ETCH" c++ -std=c++17 $level -g -pthread count.cc -o count
  rm -rf runs
  expect 0 env ETCH_LOG=diagnose "$ETCH" explore --bundles runs -o found.etch ./count
  grep 'lab: runs/.*recorded' err >lines || fail "nothing was recorded"
  ! sed 's/.*hash \([0-9a-f]*\); without a recorder \([0-9a-f]*\)/\1 \2/' lines | awk '$1 != $2' | grep . ||
    fail "a recorder changes the run"
  expect 0 "$ETCH" info runs/failing-1.etch
  has out "lost       nothing"
  [ "$(grep -c 'soft  thread' out)" = 3 ] || { cat out >&2; fail "not three threads with control flow"; }
  expect 0 "$ETCH" decode runs/failing-1.etch --as line
  ended=$(awk '/^thread/ { n++ } /count.cc:[0-9]+ main/ { last[n] = $1 } END { for (i in last) print last[i] }' out)
  [ "$ended" = count.cc:18 ] || { cat out >&2; fail "main does not end with its return: $ended"; }
  # A line that ends with a call begins again behind the call: the loop's own line counts.
  if [ $level = -O0 ]; then
    expect 0 "$ETCH" decode runs/failing-1.etch --as call
    calls=$(grep -c 'lock_guard<std::mutex>::lock_guard' out || true)
    [ "$calls" = 12 ] || { cat out >&2; fail "$calls locks instead of 12"; }
  fi
  checks=$((checks + 5))
done

# What is replayed is what was executed, as in e2e/soft_replay: here with the code of lab builds.
if has_vpt; then
  # replays LEVEL PROGRAM
  replays() {
    local source=$programs/$2.c how=cc said
    [ -f "$source" ] || { source=$programs/$2.cc; how=c++; }
    "$ETCH" $how "$1" -g "$source" -pthread -o prog
    rm -rf cache rings
    mkdir rings
    "$ETCH" explore --schedules 1 --no-cause -o found.etch ./prog >out 2>err || true
    mv cache/etch/lab/* twin || { cat out err >&2; fail "$2 $1: no lab build"; }
    ETCH_RING=$work/rings ETCH_RING_KB=16384 "$ETCH" record --source vpt -o truth.etch ./twin >out 2>err || true
    "$ETCH" record --rings rings -o soft.etch 2>err || { cat err >&2; fail "$2 $1: no rings"; }
    said=$("$ETCH_BUILD/tests/soft_compare" truth.etch soft.etch 2>&1) ||
      { echo "$said" | tail -n 12 >&2; fail "$2 $1"; }
    checks=$((checks + 1))
  }
  replays -O0 threads
  replays -O2 exceptions
  replays -O2 jumps
  replays -O2 switches
fi
done_checking
