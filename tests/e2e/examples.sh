#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of --help, as they are written. Each one is run here, or is named below with the reason why not; a new example is run.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "jq is not installed"
export PATH=$ETCH_BUILD:$PATH HOME=$work/home
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CC CXX
mkdir -p "$work/home" "$work/there/tests"
cd "$work/there"

# What the examples name.
cat >server.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter, jobs;
static int *box;

static void *use(void *unused)
{
    (void)unused;
    counter += *box;
    return NULL;
}

int main(int argc, char **argv)
{
    int fails = argc > 1 && (strcmp(argv[1], "--test") == 0 || strcmp(argv[1], "--once") == 0 || strcmp(argv[1], "input.txt") == 0);
    pthread_t t;

    box = malloc(sizeof(*box));
    *box = ++jobs;
    if (argc > 1 && strcmp(argv[1], "--crash") == 0)
        box = NULL;
    pthread_create(&t, NULL, use, NULL);
    if (!fails)
        pthread_join(t, NULL);
    box = NULL;
    if (fails)
        pthread_join(t, NULL);
    return 0;
}
END
etch cc --record -g -pthread server.c -o server
cp server long-runner
etch cc --record -g -pthread server.c -o a.out
cat >queue.c <<'END'
#include <pthread.h>
#include <stdlib.h>

static int *box;
static int used;
static int *before;

static void *use(void *unused)
{
    (void)unused;
    before = box;




    for (int i = 0; i < 2; i++)
    {
        used++; /* line 18 */
    }
    used += *box;
    return NULL;
}

int main(void)
{
    pthread_t t;

    box = calloc(1, sizeof(*box));
    pthread_create(&t, NULL, use, NULL);
    box = NULL;
    pthread_join(t, NULL);
    return used != 2;
}
END
[ "$(sed -n 18p queue.c)" = '        used++; /* line 18 */' ] || fail "line 18 has moved"
cat >logger.c <<'END'
#include <pthread.h>
#include <stdio.h>
static int written;
static void *add(void *unused)
{
    int before = written;
    written = before + 1;
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, add, NULL);
    add(NULL);
    pthread_join(t, NULL);
    puts(written == 2 ? "whole" : "corrupt");
    return 0;
}
END
etch cc --record -g -pthread logger.c -o logger
{ for i in $(seq 1036); do echo; done; printf 'int total;\nint main(int argc, char **)\n{\n    total = argc + 1;\n    return total;\n}\n'; } >pbzip2.cpp
etch c++ -g pbzip2.cpp -o pbzip2
printf 'int f(int a) { return a + 1; }\n' >file.c
touch input.txt
cat >parse.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    int *value = NULL, c;
    if (!file)
        return 2;
    while ((c = fgetc(file)) != EOF)
        if (c == '=')
            value = malloc(sizeof(*value));
    *value = 1;
    return 0;
}
END
etch cc --record -g parse.c -o parse
mkdir cases
printf 'a=1\n' >cases/good.ini
printf 'a=\n' >cases/empty.ini
printf 'a\n' >cases/bare.ini
printf '#!/bin/sh\nexec ./server --test\n' >tests/stress.sh
printf '#!/bin/sh\nprintf "all:\\n\\t%%s -c file.c\\n" "$CC" >Makefile\n' >configure
chmod +x tests/stress.sh configure
printf 'cmake_minimum_required(VERSION 3.16)\nproject(x C CXX)\nadd_library(x STATIC file.c)\n' >CMakeLists.txt

for i in 1 2; do etch record --source lab --schedule random:$i -o pass$i.etch -- ./server >/dev/null 2>&1; done
seed=0
for name in fail1 fail2; do
  for seed in $(seq $((seed + 1)) $((seed + 200))); do
    etch record --source lab --schedule random:$seed -o $name.etch -- ./server --test >/dev/null 2>&1 || break
  done
done
etch record --source soft -o run.etch -- ./server --crash >/dev/null 2>&1 || true
for name in fail1 fail2 run; do etch info --json $name.etch | jq -e .failure >/dev/null || fail "the run of $name.etch did not fail"; done

# not EXAMPLE-PATTERN REASON; status N EXAMPLE-PATTERN
declare -A reasons statuses
not() { reasons[$1]=$2; }
status() { statuses[$2]=$1; }
not 'etch record --pid *' "runs until Ctrl-C or for seconds: e2e/native_outside, e2e/soft_attach"
not 'etch record --source pt *' "needs Intel PT: rig/pt"
not 'etch record --recover *' "needs a killed recorder: e2e/recover"
not 'etch decode perf.data *' "needs Intel PT: e2e/perf_vpt"
not 'etch confirm --native *' "takes minutes: e2e/confirm"
not 'etch verify-fix --schedules *' "takes a minute: e2e/verify_fix"
not 'etch sketch ./server --core *' "needs a core: e2e/core"
not 'etch sketch ./server --rings *' "names a folder of the system: docs/howto/always-on"
not 'etch core --install*' "is about the machine: e2e/core"
not 'etch bench *' "takes minutes: e2e/bench"
not 'etch report run.etch --slowest *' "names a function of a program that is not here: e2e/report"
not 'etch report --diff *' "needs many recordings: e2e/report"
not 'sudo *' "changes the machine: e2e/core"
[ "$(nproc --all)" -gt 3 ] || not 'taskset -c 0,3 *' "there is no CPU 3"
has_vpt || not 'etch diagnose --program *' "needs vpt"
has_watchpoints || not '*--source none --watch*' "needs watchpoints"
status 1 'etch verify-fix --failing *' # this queue is not mended

# look_up ARRAY LINE: the entry whose pattern fits
look_up() {
  local -n table=$1
  local pattern
  for pattern in "${!table[@]}"; do
    # shellcheck disable=SC2053
    [[ $2 != $pattern ]] || { echo "${table[$pattern]}"; return; }
  done
}

left=0
# The commands in the order in which one needs what another made.
listed=$("$ETCH" --help | sed -n 's/^  \([a-z+-]\{2,\}\)  *.*/\1/p' | grep -v '^etch$')
for c in explore $(grep -vx explore <<<"$listed"); do
  "$ETCH" help "$c" | sed -n '/^examples:/,/^$/s/^  //p' >lines
  [ -s lines ] || fail "etch help $c has no examples"
  while IFS= read -r line <&3; do
    reason=$(look_up reasons "$line")
    if [ -n "$reason" ]; then
      echo "not run: $line ($reason)"
      left=$((left + 1))
      continue
    fi
    want=$(look_up statuses "$line")
    rm -f public.etch
    got=0
    timeout 300 bash -c "$line" >"$work/out" 2>&1 </dev/null || got=$?
    [ "$got" -eq "${want:-0}" ] || { cat "$work/out" >&2; fail "'$line' exits with $got, not ${want:-0}"; }
    checks=$((checks + 1))
  done 3<lines
done
[ "$left" -lt "$checks" ] || fail "most examples were not run"
done_checking
