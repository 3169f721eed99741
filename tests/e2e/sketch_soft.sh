#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the sketch makes of control flow by the compiled-in recorder together with debug registers' hits: which turn of a statement a hit
# belongs to, what is known of a thread's end, when a hit can have been, what
# other failing runs add, and signal handlers.
. "$(dirname "$0")/lib.sh"
cd "$work"
printf 'int x; int main(void) { x = 1; return x - 1; }' >watch.c
"$ETCH" cc -g watch.c -o watch
"$ETCH" record -o watch.etch --source none --watch x ./watch 2>/dev/null || skip "no hardware watchpoints"

record() { # FILE WATCH PROGRAM [ARG]: a run, whether it fails or not
  "$ETCH" record --source soft ${2:+--watch "$2"} -o "$1" -- "./$3" ${4:+"$4"} >/dev/null 2>&1 || true
}
sketch() { expect 0 "$ETCH" sketch --all --json sketch.json "$@"; }
ask() { # PYTHON: of the sketch `s`
  checks=$((checks + 1))
  python3 -c "import json; s = json.load(open('sketch.json')); assert $1" 2>"$work/err" || { cat "$work/out" "$work/err" >&2; fail "$1"; }
}

# An instruction that is hit again and again: each hit is of a turn of its own, and the last one's value is the one that counts.
cat >turns.c <<'C'
static volatile int level;
static void set(int to)
{
    level = to;
}
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 1; i < 4; i++)
        set(i);
    set(argc > 1 ? 0 : 5);
    return 10 / level > 5 ? 1 : 0;
}
C
"$ETCH" cc --record -O0 -g turns.c -o turns
for i in 1 2; do
  record turns-fail$i.etch level turns x
  record turns-pass$i.etch level turns
done
sketch ./turns turns-*.etch
ask "[v['value'] for t in s['steps'] if t['place']['line'] == 4 for v in t['values'] if s['variables'][v['variable']]['name'] == 'level'] == ['0x0']"

# Behind its last call a thread leaves no byte before it fails. A hit proves that its statement ran; without one nobody knows, and
# that it did not run is not claimed.
cat >end.c <<'C'
#include <stdlib.h>
#include <time.h>
static volatile int level;
static void rest(void)
{
    struct timespec t = {0, 1000};

    nanosleep(&t, NULL);
}
int main(int argc, char **argv)
{
    (void)argv;
    level = argc > 1 ? 0 : 5;
    rest();
    int now = level;
    return 10 / now > 5 ? 1 : 0;
}
C
"$ETCH" cc --record -O0 -g end.c -o end
for i in 1 2; do
  record end-blind$i.etch "" end x
  record end-fail$i.etch level end x
  record end-pass$i.etch level end
done
sketch ./end end-*.etch
ask "not any('is not executed' in p['text'] for p in s['predictors'])"
ask "s['predictors'][0]['text'] == 'level == 0 at main end.c:13'" # the write comes before the read
ask "[t['place']['line'] for t in s['steps']] == [13, 15, 16]"

# A hit is stamped when it is over. That it did not begin before the thread's pauses only the recorder's own stamps tell.
cat >pauses.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static volatile int level;
static int pauses;
static void rest(long ms)
{
    struct timespec t = {0, ms * 1000000};

    nanosleep(&t, NULL);
    if (ms > 20)
        pauses++;
}
static void *other(void *arg)
{
    rest(20);
    level = 0;
    return arg;
}
int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, other, NULL);
    level = 0;
    rest(300);
    rest(300);
    level = 0;
    pthread_join(t, NULL);
    return 10 / level > 5 ? 1 : 0;
}
C
"$ETCH" cc --record -O0 -g pauses.c -o pauses -pthread
record pauses-fail.etch level pauses
sketch ./pauses pauses-fail.etch
ask "not any({s['steps'][i]['place']['line'] for i in u['steps']} == {17, 28} for u in s['unordered'])"

# Debug registers are few. Who had left the address there was not watched in the run that is shown, but in another that failed likewise.
cat >borrow.c <<'C'
#include <pthread.h>
#include <time.h>
struct item {
    int *data;
};
static int number = 5;
static struct item one;
static struct item *volatile head;
static int late;
static void rest(long ms)
{
    struct timespec t = {0, ms * 1000000};

    nanosleep(&t, NULL);
    if (ms > 990)
        late++;
}
static struct item *take(void)
{
    struct item *i = head;
    return i;
}
static void *worker(void *arg)
{
    struct item *i = take();
    rest(arg ? 900 : 10);
    return *i->data == 5 ? NULL : arg;
}
int main(int argc, char **argv)
{
    pthread_t t;

    (void)argv;
    one.data = &number;
    head = &one;
    pthread_create(&t, NULL, worker, argc > 1 ? &t : NULL);
    rest(300);
    one.data = NULL;
    pthread_join(t, NULL);
    return 0;
}
C
"$ETCH" cc --record -O0 -g borrow.c -o borrow -pthread
for i in 1 2 3; do
  record borrow-fail$i.etch one borrow x
  record borrow-pass$i.etch one borrow
done
record borrow-other.etch head borrow x
expect 0 "$ETCH" sketch --json sketch.json ./borrow borrow-fail*.etch borrow-pass*.etch borrow-other.etch
ask "s['predictors'][0]['kind'] == 'order'"
ask "{21, 35} <= {t['place']['line'] for t in s['steps']}"

# A signal handler's accesses come between those of what it interrupted, as another thread's would.
cat >handler.c <<'C'
#include <signal.h>
#include <stddef.h>
struct transfer {
    int left;
};
static struct transfer one = {5};
static struct transfer *volatile current;
static void on_signal(int number)
{
    (void)number;
    current = NULL;
}
static int pump(int early)
{
    if (!current)
        return 0;
    if (!early)
        raise(SIGUSR1);
    return current->left;
}
int main(int argc, char **argv)
{
    int left;

    (void)argv;
    signal(SIGUSR1, on_signal);
    current = &one;
    left = pump(argc == 1);
    if (argc == 1)
        raise(SIGUSR1);
    return left - 5;
}
C
"$ETCH" cc --record -O0 -g handler.c -o handler
for i in 1 2; do
  record handler-fail$i.etch current handler x
  record handler-pass$i.etch current handler
done
sketch ./handler handler-*.etch
ask "s['predictors'][0]['kind'] == 'atomicity' and [p['line'] for p in s['predictors'][0]['statements']] == [15, 11, 19]"
ask "[t['place']['line'] for t in s['steps'] if t['place']['line'] in (15, 11, 19)] == [15, 11, 19]"

# A division fails after it has read, and no debug register traps. And of several objects that an instruction uses the one that it fails
# with is not the first: a register that is left is set on the next.
cat >objects.c <<'C'
#include <stdlib.h>
struct column {
    unsigned width;
    char name[12];
};
static void set(struct column *c, unsigned width)
{
    c->width = width;
}
static unsigned lines(const struct column *c, unsigned letters)
{
    return letters / c->width + 1;
}
int main(int argc, char **argv)
{
    struct column *columns = calloc(2, sizeof(*columns));
    unsigned n = 0;

    (void)argv;
    for (int i = 0; i < 2; i++)
        set(&columns[i], 8);
    if (argc > 1)
        columns[1].name[-4] = 0;
    for (int i = 0; i < 2; i++)
        n += lines(&columns[i], 100);
    return n != 26;
}
C
"$ETCH" cc --record -O0 -g objects.c -o objects
record objects-first.etch "" objects x
expect 0 "$ETCH" slice ./objects --failure objects-first.etch --sigma 8 --plan objects.plan
for i in 1 2; do
  "$ETCH" record --source soft --plan objects.plan -o objects-fail$i.etch -- ./objects x >/dev/null 2>&1 || true
  "$ETCH" record --source soft --plan objects.plan -o objects-pass$i.etch -- ./objects >/dev/null 2>&1
done
sketch ./objects objects-fail*.etch objects-pass*.etch
ask "s['predictors'][0]['kind'] == 'origin' and [p['line'] for p in s['predictors'][0]['statements']] == [23, 12]"
ask "'line 23' in s['sentence'] and 'line 12' in s['sentence'] and 'Suspected: so in 2 of 2' in s['sentence']"
ask "[f['function'] for f in s['stacks'][0]['frames']] == ['lines', 'main'] and s['stacks'][0]['thread'] == 0"

# A stack overflow is called that, in a first thread and in another.
cat >deep.c <<'C'
#include <pthread.h>
#include <string.h>
static int depth(int n, int end)
{
    char room[200];
    memset(room, n, sizeof(room));
    return n == end ? room[3] : depth(n + 1, end) + room[7];
}
static void *work(void *end)
{
    return (void *)(long)depth(0, *(int *)end);
}
int main(int argc, char **argv)
{
    int end = -1;
    pthread_t thread;
    (void)argv;
    if (argc > 1)
        return depth(0, end);
    pthread_create(&thread, 0, work, &end);
    pthread_join(thread, 0);
    return 0;
}
C
"$ETCH" cc --record -O0 -g -pthread deep.c -o deep
for words in "" x; do
  "$ETCH" record --source soft -o deep.etch -- ./deep $words >/dev/null 2>&1 || true
  sketch ./deep deep.etch
  ask "s['headline'] == 'stack overflow in depth() (SIGSEGV)' and s['failure']['cause'] == 'stack_overflow'"
done

echo "$checks checks"
