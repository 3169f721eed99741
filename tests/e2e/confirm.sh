#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch confirm: the orders of a cause make the program fail, and their opposites do not, in the lab and natively.

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
echo "main config.cpp:21 after main.1 config.cpp:14" > right
echo "main.1 config.cpp:14 after main config.cpp:21" > wrong
echo "main.1 config.cpp:4 after main config.cpp:21" > nowhere
expect 1 "$ETCH" confirm --native --runs 5 --orders nowhere ./cpp0
has err "this line has no code"
# Natively: the orders make every run fail, and their opposites none. The limit of a hold is far off, so that a slow machine leaves out
# no run.
natively() { # PROGRAM ORDERS STATUS ENFORCED FORBIDDEN
  expect "$3" "$ETCH" confirm --native --runs 4 --hold 60 --orders "$2" "./$1"
  has out "enforced   $4 of 4 runs fail"
  has out "forbidden  $5 of 4 runs fail"
}
natively cpp0 right 0 4 0
has out "confirmed natively"
natively cpp0 wrong 1 0 4
has out "not confirmed"
for name in freed split; do # the cause of a schedule
  expect 0 "$ETCH" confirm --native --runs 4 --hold 60 "$name.schedule.etch"
  has out "enforced   4 of 4 runs fail"
  has out "forbidden  0 of 4 runs fail"
  has out "confirmed natively"
done

# A thread that never comes: the other one is held for a while, and the run does not count.
echo "main config.cpp:22 after main.7 config.cpp:14" > never
expect 1 "$ETCH" confirm --native --runs 2 --hold 0.3 --orders never ./cpp0
grep -qE 'enforced   [0-9]+ of [0-9]+ runs fail' out || fail "no counts"
expect 2 "$ETCH" confirm --runs none early.schedule.etch
expect 2 "$ETCH" confirm
expect 1 "$ETCH" confirm no-such-file
done_checking
