#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch confirm: the orders of a cause make the program fail, and their opposites do not in the lab.

. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache


# confirmed NAME COMPILER SOURCE OPTION...: explores, then confirms in both ways
confirmed() {
  local name=$1 compiler=$2 source=$3
  shift 3
  "$ETCH" "$compiler" -g -pthread "$@" "$source" -o "$name"
  expect 0 "$ETCH" explore --no-cause -o "$name.schedule.etch" "./$name"
  expect 0 "$ETCH" confirm --runs 10 "$name.schedule.etch"
  has out "confirmed in the lab"
}
corpus=$ETCH_SOURCE/tests/corpus
confirmed early cc "$corpus/order-init/bug.c" -O0
confirmed freed cc "$corpus/use-after-free/bug.c" -O2
confirmed split cc "$corpus/atomicity-rwr/bug.c" -O0

cat > config.cpp <<'EOF'
#include <cstdio>
#include <memory>
#include <thread>

struct config {
    int limit = 3;
};

static config *volatile current;
static volatile int seen;

static void serve()
{
    config *c = current;
    seen = c->limit;
}

int main()
{
    std::thread worker(serve);
    current = new config;
    worker.join();
    std::printf("%d\n", seen);
    return 0;
}
EOF
confirmed cpp0 c++ config.cpp -std=c++17 -O0
confirmed cpp2 c++ config.cpp -std=c++17 -O2

# Orders by hand. The opposite of the cause does not make the program fail; a line without code is refused.
echo "main config.cpp:21 after main.1 config.cpp:13" > right
echo "main.1 config.cpp:13 after main config.cpp:21" > wrong
echo "main.1 config.cpp:4 after main config.cpp:21" > nowhere
expect 1 "$ETCH" confirm --native --runs 5 --orders nowhere ./cpp0
has err "this line has no code"
# A thread that never comes: the other one is held for a while, and the run does not count.
echo "main config.cpp:22 after main.7 config.cpp:13" > never
expect 1 "$ETCH" confirm --native --runs 2 --hold 0.3 --orders never ./cpp0
grep -qE 'enforced   [0-9]+ of [0-9]+ runs fail' out || fail "no counts"
expect 2 "$ETCH" confirm --runs none early.schedule.etch
expect 2 "$ETCH" confirm
expect 1 "$ETCH" confirm no-such-file
done_checking
