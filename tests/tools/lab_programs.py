#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lab_programs.py FIRST COUNT: random programs with threads, in one C file, and what they may do.

The C program takes the number of one of them. It aborts if it ends in a way that the oracle does not allow. Without a number it
prints each number, and "hang" behind it if that program may hang. The oracle goes through all interleavings of the program's
operations, which are few. Each access is atomic, so a run in the lab has no other interleavings.
"""
import random
import sys

MUTEXES, SEMAPHORES, VARIABLES = 2, 2, 3
MOST_STATES = 60000


def make(rng):
    """The threads: lists of operations. Thread 0 is main, which makes and joins the others."""
    threads = []
    for _ in range(rng.randint(2, 3)):
        threads.append(make_body(rng, rng.randint(2, 5)))
    return threads


def make_body(rng, size):
    body = []
    while len(body) < size:
        kind = rng.choice(["add", "copy", "cas", "lock", "nested", "post", "wait", "trywait", "timedwait", "signal", "await", "read", "write",
                           "spin", "yield", "sleep"])
        v, w = rng.randrange(VARIABLES), rng.randrange(VARIABLES)
        m = rng.randrange(MUTEXES)
        s = rng.randrange(SEMAPHORES)
        if kind in ("add", "cas"):
            body.append((kind, v, w, rng.randint(1, 3)))
        elif kind == "copy":
            body += [("load", v), ("store", w, rng.randint(0, 3))]
        elif kind == "read":
            body += [("rdlock",), ("load", v), ("add", w, w, 1), ("rwunlock",)]
        elif kind == "write":
            body += [("wrlock",), ("load", v), ("store", v, 1), ("rwunlock",)]
        elif kind == "spin":
            body += [("spinlock",), ("load", v), ("store", v, 2), ("spinunlock",)]
        elif kind == "lock":  # read and write apart, within the lock
            body += [("lock", m), ("load", v), ("store", v, rng.randint(1, 3)), ("unlock", m)]
        elif kind == "nested":  # in the order of the numbers, or against it: then the program may hang
            a, b = (0, 1) if rng.random() < 0.7 else (1, 0)
            body += [("lock", a), ("lock", b), ("add", v, w, 1), ("unlock", b), ("unlock", a)]
        elif kind in ("post", "wait", "trywait", "timedwait"):
            body.append((kind, s, v))
        elif kind == "signal":
            body += [("lock", 0), ("set", v, 1), ("signal",) if rng.random() < 0.5 else ("broadcast",), ("unlock", 0)]
        elif kind == "await":  # waits until the variable is not 0
            body += [("lock", 0), ("await", v), ("unlock", 0)]
        else:
            body.append((kind,))
    return body


# ---- The oracle ----

def outcomes(threads):
    """All ends: the variables, or "hang". None if there are too many states."""
    n = len(threads)
    # Of each thread: position, register, whether it waits for the condition. Then the variables, the holders of the mutexes, of the
    # spin lock and of the read-write lock (-2: readers, whose number follows), and the semaphores.
    first = ((0, 0, False),) * n, (0,) * VARIABLES, (-1,) * (MUTEXES + 3), (1,) * SEMAPHORES
    seen, todo, ends = {first}, [first], set()
    while todo:
        state = todo.pop()
        following = list(step(threads, state))
        if not following:
            done = all(t[0] == len(threads[i]) for i, t in enumerate(state[0]))
            ends.add(state[1] if done else "hang")
        for s in following:
            if s not in seen:
                seen.add(s)
                todo.append(s)
        if len(seen) > MOST_STATES:
            return None
    return ends


def put(values, at, value):
    return values[:at] + (value,) + values[at + 1:]


SPIN, RW, READERS = MUTEXES, MUTEXES + 1, MUTEXES + 2
PLACES = {"spinlock": SPIN, "spinunlock": SPIN, "wrlock": RW}


def wake(op, run):
    """The threads after a signal or a broadcast: a signal may wake any one of those that wait."""
    sleepers = [k for k, t in enumerate(run) if t[2]]
    if op == "broadcast" or not sleepers:
        for k in sleepers:
            run = put(run, k, (run[k][0], run[k][1], False))
        yield run
        return
    for k in sleepers:
        yield put(run, k, (run[k][0], run[k][1], False))


def step(threads, state):
    """The states that can follow."""
    run, variables, locks, semaphores = state
    for i, (at, register, waits) in enumerate(run):
        if at == len(threads[i]) or waits:
            continue
        op = threads[i][at]
        name = op[0]
        v, m, s, r, then = variables, locks, semaphores, register, at + 1
        if name == "add":
            v = put(v, op[1], v[op[1]] + op[3])
        elif name == "cas":
            v = put(v, op[1], op[3]) if v[op[1]] == 0 else v
        elif name == "set":
            v = put(v, op[1], v[op[1]] + op[2])
        elif name == "load":
            r = v[op[1]]
        elif name == "store":
            v = put(v, op[1], r + op[2])
        elif name in ("lock", "spinlock", "wrlock"):
            place = PLACES.get(name, op[1] if name == "lock" else 0)
            if m[place] != -1:
                continue
            m = put(m, place, i)
        elif name in ("unlock", "spinunlock"):
            m = put(m, PLACES.get(name, op[1] if name == "unlock" else 0), -1)
        elif name == "rdlock":
            if m[RW] >= 0:
                continue
            m = put(put(m, RW, -2), READERS, max(m[READERS], 0) + 1)
        elif name == "rwunlock":
            if m[RW] >= 0:
                m = put(m, RW, -1)
            else:
                m = put(m, READERS, m[READERS] - 1)
                m = put(put(m, RW, -1), READERS, -1) if m[READERS] == 0 else m
        elif name == "post":
            s = put(s, op[1], s[op[1]] + 1)
        elif name == "wait":
            if s[op[1]] == 0:
                continue
            s = put(s, op[1], s[op[1]] - 1)
        elif name in ("trywait", "timedwait"):  # the time may be up at any moment
            if s[op[1]] > 0:
                s, v = put(s, op[1], s[op[1]] - 1), put(v, op[2], v[op[2]] + 1)
        elif name == "await" and r == -1:  # was woken, and takes the lock again
            if m[0] != -1:
                continue
            m, r, then = put(m, 0, i), 0, at
        elif name == "await" and v[op[1]] == 0:
            yield put(run, i, (at, -1, True)), v, put(m, 0, -1), s
            continue
        elif name in ("signal", "broadcast"):
            for woken in wake(name, put(run, i, (then, r, False))):
                yield woken, v, m, s
            continue
        yield put(run, i, (then, r, False)), v, m, s


# ---- The program ----

TEXT = {
    "add": "atomic_fetch_add(&v[{1}], {3});",
    "cas": "{{ int zero = 0; atomic_compare_exchange_strong(&v[{1}], &zero, {3}); }}",
    "set": "atomic_fetch_add(&v[{1}], {2});",
    "load": "r = atomic_load(&v[{1}]);",
    "store": "atomic_store(&v[{1}], r + {2});",
    "lock": "pthread_mutex_lock(&m[{1}]);",
    "unlock": "pthread_mutex_unlock(&m[{1}]);",
    "spinlock": "while (atomic_flag_test_and_set(&spin)) {{ }}",
    "spinunlock": "atomic_flag_clear(&spin);",
    "rdlock": "pthread_rwlock_rdlock(&rw);",
    "wrlock": "pthread_rwlock_wrlock(&rw);",
    "rwunlock": "pthread_rwlock_unlock(&rw);",
    "post": "sem_post(&s[{1}]);",
    "wait": "while (sem_wait(&s[{1}]) < 0) {{ }}",
    "trywait": "if (sem_trywait(&s[{1}]) == 0) atomic_fetch_add(&v[{2}], 1);",
    "timedwait": "if (in_time(&s[{1}])) atomic_fetch_add(&v[{2}], 1);",
    "signal": "pthread_cond_signal(&c);",
    "broadcast": "pthread_cond_broadcast(&c);",
    "await": "while (!atomic_load(&v[{1}])) pthread_cond_wait(&c, &m[0]);",
    "yield": "sched_yield();",
    "sleep": "usleep(50);",
}

HEAD = """#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static _Atomic int v[%d];
static sem_t s[%d];
static pthread_mutex_t m[%d];
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static atomic_flag spin = ATOMIC_FLAG_INIT;
static int in_time(sem_t *one)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec++;
    return sem_timedwait(one, &t) == 0;
}
""" % (VARIABLES, SEMAPHORES, MUTEXES)


def c_text(k, threads, ends):
    lines = []
    for i, body in enumerate(threads):
        lines += [f"static void *p{k}_{i}(void *unused)", "{", "    int r = 0;"]
        lines += ["    " + TEXT[op[0]].format(*op) for op in body]
        lines += ["    (void)r;", "    return unused;", "}"]
    lines += [f"static void p{k}(void)", "{", f"    pthread_t t[{len(threads)}];"]
    lines += [f"    pthread_create(&t[{i}], 0, p{k}_{i}, 0);" for i in range(len(threads))]
    lines += [f"    pthread_join(t[{i}], 0);" for i in range(len(threads))]
    allowed = [" && ".join(f"v[{i}] == {e[i]}" for i in range(VARIABLES)) for e in sorted(ends - {"hang"})]
    lines += [f"    if (!({' || '.join(f'({a})' for a in allowed) or '0'})) abort();", "}"]
    return "\n".join(lines) + "\n"


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2])
    text, table = HEAD, []
    for k in range(first, first + count):
        rng = random.Random(k)
        ends = None
        while ends is None:
            threads = make(rng)
            ends = outcomes(threads)
        text += c_text(k, threads, ends)
        table.append((k, "hang" in ends))
    text += "int main(int argc, char **argv)\n{\n"
    text += f"    for (int i = 0; i < {SEMAPHORES}; i++) sem_init(&s[i], 0, 1);\n"
    for k, hangs in table:
        text += f'    if (argc < 2) puts("{k}{" hang" if hangs else ""}");\n    else if (atoi(argv[1]) == {k}) p{k}();\n'
    sys.stdout.write(text + "    return 0;\n}\n")


main()
