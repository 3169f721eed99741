#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The program's own shared libraries are in the lab build: their accesses are points, they are named with their lines, and names mean
# what they mean to the loader: hidden ones stay apart, the program's own definition counts, libraries begin before the program.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
cp "$ETCH_SOURCE"/tests/programs/lab_library/* .
mkdir lib

line() { grep -n "//@$2\$" "$1" | cut -d: -f1; }

for level in -O0 -O2; do
  "$ETCH" cc $level -g -fPIC -fsemantic-interposition -shared counter.c -o lib/libcounter.so.1 -Wl,-soname,libcounter.so.1
  ln -sf libcounter.so.1 lib/libcounter.so
  "$ETCH" cc $level -g main.c -o count -Llib -lcounter -Wl,-rpath,'$ORIGIN/lib' -pthread
  expect 0 ./count
  expect 0 "$ETCH" explore -o count.etch ./count
  has out "exit status 1 in schedule"
  grep -qE "T[12] counter.c:($(line counter.c read)|$(line counter.c write)) counter_run" out || fail "C $level: no cause in the library"
  expect 0 "$ETCH" replay --times 3 count.etch
  has out "3 of 3 times the same run"

  "$ETCH" c++ -std=c++17 $level -g -fPIC -fvisibility-inlines-hidden -shared store.cc -o lib/libstore.so -Llib -lcounter -Wl,-rpath,'$ORIGIN'
  "$ETCH" c++ -std=c++17 $level -g main.cc -o store lib/libstore.so lib/libcounter.so -Wl,-rpath,"$PWD/lib" -pthread
  expect 0 ./store
  expect 0 "$ETCH" explore --bundles runs-$level -o store.etch ./store
  grep -qE "^(SIGSEGV|use after free) in schedule" out || { cat out >&2; fail "C++ $level: not found"; }
  grep -qE "store.cc:($(line store.cc drop)|$(line store.cc free)) store::Box::drop \((write|call)\) before .*store::Box::value" out ||
    { cat out >&2; fail "C++ $level: no cause in the library"; }
  expect 0 env COLUMNS=200 "$ETCH" sketch ./store runs-$level/*.etch
  grep -qE '^ CAUSE +A .*store.cc:' out || { cat out >&2; fail "C++ $level: no sketch of the library"; }
  checks=$((checks + 4))
done

# A script names lines of a library.
cat >orders <<END
main.2 counter.c:$(line counter.c read) after main.1 counter.c:$(line counter.c read)
main.1 counter.c:$(line counter.c write) after main.2 counter.c:$(line counter.c read)
END
expect 0 "$ETCH" explore --no-cause --schedules 1 --script orders -o ordered.etch ./count
has out "exit status 1 in schedule 1 "

# Another library under the same program is another lab build: its threads lock.
sed -i 's/^static int begun;/#include <pthread.h>\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n&/; s/^    int now = total;/    pthread_mutex_lock(\&lock);\n&/; s/^    return 0;/    pthread_mutex_unlock(\&lock);\n&/' counter.c
"$ETCH" cc -O2 -g -fPIC -shared counter.c -o lib/libcounter.so.1 -Wl,-soname,libcounter.so.1
expect 1 "$ETCH" explore --schedules 60 ./count
has out "no failure in 60 schedules"

# A library that cannot be taken in: one of its inputs is gone. The program is explored without, and etch says so each time.
printf 'int helper(void) { return 0; }\n' >helper.c
cc -fPIC -c helper.c -o helper.o
"$ETCH" cc -g -fPIC -shared counter.c helper.o -o lib/libcounter.so.1 -Wl,-soname,libcounter.so.1
rm helper.o
for i in 1 2; do
  expect 1 "$ETCH" explore --schedules 3 ./count
  has out "accesses in the program's libraries are no points: cannot repeat the link"
done
done_checking
