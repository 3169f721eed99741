#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What etch links into a program, loads into it, or loads into QEMU defines no name that a program could have.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache

# The libraries of the C implementation: their names are the ones that the runtimes stand in for.
for library in libc.so.6 libstdc++.so.6; do
  nm -D --defined-only "$(${CXX:-g++} -print-file-name=$library)"
done | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u >standard

# only_own FILE OPTION: each external name is reserved (_...), etch's own, or one of the C implementation
only_own() {
  nm "$2" --defined-only "$ETCH_BUILD/$1" | awk 'NF == 3 { print $3 }' | sort -u >names
  [ -s names ] || fail "$1 has no names"
  comm -23 names standard | grep -vE '^(_|etch_|DW\.ref\.|qemu_plugin_)' >alien || true
  [ ! -s alien ] || { cat alien >&2; fail "$1 defines these names"; }
  checks=$((checks + 1))
}
only_own etch-lab.o -g
only_own etch-soft.o -g
only_own etch-sync.so -D
only_own etch-vpt.so -D

# A program that has the names of the lab's runtime is explored as any other.
cat >named.c <<'C'
#include <pthread.h>
#include <stdlib.h>
int lab, lab_me, lab_threads;
void lab_point(void) { lab++; }
int lab_controlled(void) { return lab_me; }
static void *work(void *unused)
{
    lab_point();
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
    if (lab)
        abort();
    return pthread_join(t, NULL) + lab_controlled() + lab_threads;
}
C
for level in -O0 -O2; do
  "$ETCH" cc $level -g -pthread named.c -o named
  expect 0 "$ETCH" explore -o "named$level.etch" ./named
  has out "SIGABRT"
done
sed 's/^void lab_point/extern "C" void lab_point/' named.c >named.cpp
"$ETCH" c++ -std=c++17 -O2 -g -pthread named.cpp -o named
expect 0 "$ETCH" explore -o named-cpp.etch ./named
has out "SIGABRT"
done_checking
