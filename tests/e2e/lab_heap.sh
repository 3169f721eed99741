#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The heap in the lab: misuse that passes unnoticed outside is a failure, with the block's story; proper use never is.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache

cat >late.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct session { int id, user; };
static struct session *session;
static void *serve(void *unused)
{
    struct session *mine = session;
    mine->user = 7;
    return unused;
}
int main(void)
{
    pthread_t t;
    session = malloc(sizeof(*session));
    pthread_create(&t, 0, serve, 0);
    free(session);
    pthread_join(t, 0);
    return 0;
}
C
cat >late.cpp <<'C'
#include <memory>
#include <thread>
#include <vector>
int main()
{
    auto numbers = std::make_unique<std::vector<int>>(100, 1);
    auto *seen = numbers.get();
    std::thread t([seen] { (*seen)[5] = 2; });
    numbers.reset();
    t.join();
}
C
cat >twice.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static char *buffer;
static void *drop(void *unused)
{
    if (buffer)
        free(buffer);
    buffer = 0;
    return unused;
}
int main(void)
{
    pthread_t t;
    buffer = malloc(100);
    pthread_create(&t, 0, drop, 0);
    drop(0);
    pthread_join(t, 0);
    return 0;
}
C
cat >beyond.c <<'C'
#include <stdlib.h>
int main(int argc, char **argv)
{
    int *v = malloc(4 * sizeof(*v)), sum = 0;
    (void)argv;
    for (int i = 0; i < 4 + argc; i++)
        v[i] = i;
    sum = v[1];
    free(v);
    return sum - 1;
}
C
for level in -O0 -O2; do
  "$ETCH" cc $level -g -pthread late.c -o late
  expect 0 ./late # outside nobody notices
  expect 0 "$ETCH" explore -o late.etch ./late
  has out "use after free in schedule"
  has out "byte 4 of a block of 8 bytes, made by T1 at late.c:14, freed by T1 at late.c:16"
  has out "late.c:8 serve"
  expect 0 "$ETCH" replay --times 20 late.etch
  has out "use after free, 20 of 20 times the same run"
  "$ETCH" c++ -std=c++17 $level -g -pthread late.cpp -o latecpp
  expect 0 "$ETCH" explore -o late.etch ./latecpp
  has out "use after free in schedule"
  has out "late.cpp:8"
  "$ETCH" cc $level -g -pthread twice.c -o twice
  expect 0 "$ETCH" explore -o twice.etch ./twice
  grep -qE '^(double free|use after free) in schedule' out || fail "no double free"
  "$ETCH" cc $level -g beyond.c -o beyond
  expect 0 "$ETCH" explore -o beyond.etch ./beyond
  has out "access behind the end of a heap block"
  has out "byte 16 of a block of 16 bytes, made by T1 at beyond.c:4"
  expect 1 "$ETCH" explore --no-heap-check --schedules 5 ./beyond
done

# Whole stacks, with the names of C++.
cat >stacks.cpp <<'C'
#include <thread>
namespace shop {
template <typename T> struct Box {
    T value;
    explicit Box(T v) : value(v) {}
    T get() const { return value; }
};
}
static shop::Box<int> *box;
static volatile int seen;
static void make(int v) { box = new shop::Box<int>(v); }
static void drop() { delete box; }
static int look() { return box->get(); }
int main()
{
    make(3);
    std::thread reader([] { seen = look(); });
    std::thread owner([] { drop(); });
    reader.join();
    owner.join();
}
C
for level in -O0 -O2; do
  "$ETCH" c++ -std=c++17 $level -g -pthread stacks.cpp -o stacks
  expect 0 "$ETCH" explore --no-cause -o stacks.etch ./stacks
  has out "made by T1 at stacks.cpp:11, freed by T3 at stacks.cpp:12"
  sed -n 's/^    \(access\|made\|freed\|  \) *\(#[0-9]\)/\1 \2/p' out >stack
  cat >wanted <<'S'
access #0 stacks.cpp:6 shop::Box::get
   #1 stacks.cpp:13 look
   #2 stacks.cpp:17 main::{lambda:17}
made #0 stacks.cpp:11 make
   #1 stacks.cpp:16 main
freed #0 stacks.cpp:12 drop
   #1 stacks.cpp:18 main::{lambda:18}
S
  diff wanted stack || fail "not the stacks"
  checks=$((checks + 1))
done

# Locks, and free() of what is no block.
cat >locks.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t mutex;
static void *user(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_mutex_init(&mutex, 0);
    pthread_create(&t, 0, user, 0);
    pthread_mutex_destroy(&mutex);
    pthread_join(t, 0);
    return 0;
}
C
cat >inside.c <<'C'
#include <stdlib.h>
int main(void)
{
    char *volatile text = malloc(64);
    free(text + 16);
    return 0;
}
C
cat >again.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static void *user(void *m)
{
    pthread_mutex_lock(m);
    pthread_mutex_unlock(m);
    return 0;
}
int main(void)
{
    static pthread_mutex_t empty = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *m = malloc(sizeof(*m));
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        if (i % 2)
            *m = empty;
        else
            pthread_mutex_init(m, 0);
        pthread_create(&t, 0, user, m);
        pthread_join(t, 0);
        pthread_mutex_destroy(m);
    }
    free(m);
    return 0;
}
C
for level in -O0 -O2; do
  "$ETCH" cc $level -g -pthread locks.c -o locks
  expect 0 "$ETCH" explore --no-cause --all --schedules 60 -o locks.etch ./locks
  has out "in 2 ways"
  expect 0 "$ETCH" explore --no-cause -o locks.etch ./locks
  grep -qE '^a mutex (destroyed while a thread holds it|used after it was destroyed) in schedule' out || fail "no misused mutex"
  "$ETCH" cc $level -g -pthread again.c -o again
  expect 1 "$ETCH" explore --schedules 20 ./again
  "$ETCH" cc $level -g inside.c -o inside
  expect 0 "$ETCH" explore --no-cause -o inside.etch ./inside
  has out "free of an address inside a heap block"
  has out "byte 16 of a block of 64 bytes, made by T1 at inside.c:4"
done

# A block's beginning is found however large the block is.
sed 's/4 \* sizeof/300000 * sizeof/; s/i < 4 + argc/i < 300000 + argc/' beyond.c >large.c
"$ETCH" cc -O0 -g large.c -o large
expect 0 "$ETCH" explore -o large.etch ./large
has out "byte 1200000 of a block of 1200000 bytes, made by T1 at large.c:4"

# An order that frees too early is proven.
"$ETCH" cc -O0 -g -pthread "$ETCH_SOURCE/tests/corpus/use-after-free/bug.c" -o uaf
expect 0 "$ETCH" explore -o uaf.etch ./uaf
grep -qE 'proven +T1 bug.c:35 main \(write\) before T2 bug.c:18 logger \(read\)' out || { cat out >&2; fail "not proven"; }
checks=$((checks + 1))

# Proper use of all that allocates, in two threads.
cat >fine.cpp <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>
static void use()
{
    char *text = strdup("a text"), *line = nullptr;
    size_t size = 0;
    for (int i = 1; i < 40; i++) {
        text = static_cast<char *>(realloc(text, 7 + i * 13));
        text[6 + i * 13] = 'x';
    }
    memset(text, 1, malloc_usable_size(text));
    free(text);
    void *page = nullptr;
    if (posix_memalign(&page, 4096, 100) != 0)
        abort();
    memset(page, 2, 100);
    free(page);
    free(aligned_alloc(64, 128));
    free(calloc(3, 5));
    free(malloc(0));
    free(nullptr);
    FILE *in = fopen("/proc/self/status", "r");
    while (in && getline(&line, &size, in) > 0)
        ;
    if (in)
        fclose(in);
    free(line);
    std::map<std::string, std::vector<int>> all;
    for (int i = 0; i < 20; i++)
        all[std::string(static_cast<size_t>(i), 'k')].assign(static_cast<size_t>(i), i);
    all.erase("kkk");
    auto shared = std::make_shared<std::string>(100, 'y');
    std::weak_ptr<std::string> weak = shared;
    shared.reset();
    if (!weak.expired())
        abort();
}
int main()
{
    std::thread t(use);
    use();
    t.join();
}
C
for level in -O0 -O2; do
  "$ETCH" c++ -std=c++17 $level -g -pthread fine.cpp -o fine
  expect 1 "$ETCH" explore --schedules 20 ./fine
  has out "no failure in 20 schedules"
done
done_checking
