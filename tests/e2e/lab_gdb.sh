#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A recorded schedule under gdb: gdb stops at the failure, at a point and at a moment, and the run stays the recorded one.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache

cat >race.c <<'C'
#include <assert.h>
#include <pthread.h>
struct account { int balance, payments; };
struct account account = {100, 0};
static void *pay(void *amount)
{
    int before = account.balance;
    account.balance = before + *(int *)amount;
    account.payments++;
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    int amounts[2] = {10, 1000};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, pay, &amounts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(account.balance == 1110);
    return 0;
}
C
cat >race.cpp <<'C'
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>
struct Account {
    int balance = 100;
    void pay(int amount)
    {
        int before = balance;
        balance = before + amount;
    }
};
std::unique_ptr<Account> account;
int main()
{
    std::vector<std::thread> threads;
    account = std::make_unique<Account>();
    for (int amount : {10, 1000})
        threads.emplace_back([amount] { account->pay(amount); });
    for (std::thread &t : threads)
        t.join();
    if (account->balance != 1110)
        std::abort();
}
C
"$ETCH" cc -O0 -g -pthread race.c -o race0
"$ETCH" cc -O2 -g -pthread race.c -o race2
"$ETCH" c++ -std=c++17 -O0 -g -pthread race.cpp -o racepp0
"$ETCH" c++ -std=c++17 -O2 -g -pthread race.cpp -o racepp2
for prog in race0 race2 racepp0 racepp2; do
  expect 0 "$ETCH" explore --no-cause -o $prog.etch ./$prog
  has out "SIGABRT"
done

# Without gdb the answer names the package.
mkdir empty
ln -s "$ETCH" empty/etch
PATH=$work/empty expect 1 "$ETCH" replay --gdb race0.etch
has err "gdb is not installed"
has err "apt install gdb"
# Wrong places are told before gdb starts.
expect 2 "$ETCH" replay --point 1 race0.etch
has err "need --gdb"
command -v gdb >/dev/null || skip "no gdb"
expect 1 "$ETCH" replay --gdb --point 100000 race0.etch
has err "there is no point 100000: the run has"
expect 1 "$ETCH" replay --gdb --to race.c:14 race0.etch
has err "race.c:14: this line has no code"
expect 1 "$ETCH" replay --gdb --to nothing race0.etch
has err "names no access or call"
expect 1 "$ETCH" replay --gdb --to race.c:7#9 race0.etch -- -batch
has out "did not come to race.c:7#9"

sleep 100 &
sleeper=$!
gdb -batch -p $sleeper -ex 'print 40 + 2' >attach 2>&1 || true
kill $sleeper
grep -q 'detached' attach || skip "gdb may not attach to a process here"

# gdb_same N PATTERN ARGUMENT...: N times the output of gdb has the same lines of the pattern, and each run is the recorded one
gdb_same() {
  local n=$1 pattern=$2 i
  shift 2
  : >lines
  for ((i = 0; i < n; i++)); do
    expect 0 "$ETCH" replay --gdb "$@"
    has out "under gdb: the recorded run"
    ! grep -q desync out || fail "desync under gdb"
    grep -hE "$pattern" out >one || { cat out err >&2; fail "nothing like $pattern"; }
    tr '\n' ' ' <one >>lines
    echo >>lines
  done
  [ "$(sort -u lines | wc -l)" -eq 1 ] || { sort lines | uniq -c >&2; fail "not the same $n times: $*"; }
}

# The failing statement, the value, 20 of 20: in C and in C++. The thread that writes last has read 100, and the other has written.
gdb_same 20 '^(\$[0-9]|#0)' --to 'race.c:8 (write)#1' race0.etch -- -batch -ex 'print before' -ex 'print account.balance' -ex 'bt 1'
grep -qE '\$1 = 100 .*pay .*race.c:8' lines || { cat lines >&2; fail "not at the statement"; }
gdb_same 20 '^\$[0-9]' --to 'T3 race.cpp:10 (write)' racepp0.etch -- -batch -ex 'print before' -ex 'print this->balance' -ex 'print amount'
grep -qE '\$1 = 100 \$2 = 1[01]+ \$3 = 1000' lines || { cat lines >&2; fail "not the value that was read"; }

# At the failure: the threads have lost an update.
gdb_same 2 '^\$[0-9]' race0.etch -- -batch -ex 'print account.balance != 1110' -ex 'print account.payments >= 1'
has lines '$1 = 1 $2 = 1'
gdb_same 2 '^(\$[0-9]|Thread .* received)' race2.etch -- -batch -ex 'print account.balance'
has lines 'received signal SIGABRT'
gdb_same 2 'received' racepp2.etch -- -batch -ex bt
has out "in main"

# At points. Waiting and stepping in between are longer than the lab's own patience, and change nothing.
points=$("$ETCH" replay --gdb race0.etch -- -batch 2>&1 | sed -n 's/.* \([0-9]*\) points.*/\1/p')
for n in 1 $((points / 2)) $((points - 1)); do
  expect 0 "$ETCH" replay --gdb --point $n race0.etch -- -batch -ex 'shell sleep 0.3' -ex next -ex 'shell sleep 0.3' -ex next -ex continue
  has out "under gdb: the recorded run"
  has out "received signal SIGABRT"
done
done_checking
