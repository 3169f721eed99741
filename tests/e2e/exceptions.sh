#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What ends by std::terminate: the exception's type, what it says, and the line of the user's own source that threw it, whichever way
# it went from there. With each source, optimised and not.
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")/../programs/exceptions" && pwd)/throws.cpp
cd "$work"
for o in 0 2; do
  "$ETCH" c++ -std=c++17 -g -O$o -w -pthread "$source" -o throws-O$o
done
"$ETCH" c++ --record -std=c++17 -g -O2 -w -pthread "$source" -o recorded

line_of() { grep -n "// $1\$" "$source" | cut -d: -f1; }
ask() { # PYTHON: of the sketch `s` and its exception `e`
  checks=$((checks + 1))
  python3 -c "import json; s = json.load(open('sketch.json')); e = s['exception']; assert $1" 2>"$work/err" || {
    cat sketch.json "$work/err" >&2
    fail "$program $case, $from: $1"
  }
}
sketch() { # SOURCE PROGRAM CASE BLAMED HEADLINE
  from=$1 program=$2 case=$3
  "$ETCH" record --source "$from" -o run.etch -- "./$program" "$case" >/dev/null 2>&1 || true
  expect 0 "$ETCH" sketch --json sketch.json --sarif sketch.sarif "./$program" run.etch
  ask "s['failing_place']['line'] == $(line_of "$4")"
  ask "s['headline'] == '''$5'''"
}
thrown() { # the same, of an exception of TYPE that says WHAT
  sketch "$1" "$2" "$3" "$4" "uncaught $5 in $6(): $7"
  ask "(e['type'], e['what'], e['value']) == ('$5', '$7', None)"
  ask "e['thrown_at']['line'] == $(line_of "$4") and e['thrown_at']['function'] == '$6'"
  checks=$((checks + 1))
  python3 -c "
import json
r = json.load(open('sketch.sarif'))['runs'][0]['results'][0]
assert r['ruleId'] == 'uncaught-exception' and r['properties']['exception'] == json.load(open('sketch.json'))['exception']
assert r['locations'][0]['physicalLocation']['region']['startLine'] == $(line_of "$4") and '$5' in r['message']['text']" || fail "$3: SARIF"
}
try_most() { # SOURCE PROGRAM
  local p="$1 $2"
  thrown $p plain plain std::runtime_error plain 'bad number 1'
  ask "e['thrown_again_at'] == [] and not e['stopped_at'] and not e['while_unwinding'] and s['failure']['cause'] == 'exception'"
  ask "not any('exception' in n for n in s['notes'])"
  thrown $p thread plain std::runtime_error plain 'bad number 1'
  thrown $p own own store::missing_key own 'no key 1'
  thrown $p shared shared std::runtime_error shared 'too few'
  # The stack is unwound when the program ends.
  thrown $p noexcept noexcept std::logic_error stopped stopped
  ask "e['stopped_at']['function'] == 'never' and any('could not leave a function that is noexcept' in n for n in s['notes'])"
  # The first throw counts; where it was thrown again is said.
  thrown $p pointer pointer std::domain_error keep 'of another thread'
  ask "len(e['thrown_again_at']) == 1 and any('thrown again at throws.cpp' in n for n in s['notes'])"
  # Without an exception.
  sketch $p joinable joinable 'std::terminate in joinable(): a std::thread was destroyed that was neither joined nor detached'
  sketch $p pure pure 'a pure virtual function was called in shape::draw()'
}
try_others() { # SOURCE PROGRAM
  local p="$1 $2"
  thrown $p pthread plain std::runtime_error plain 'bad number 1'
  thrown $p mixed mixed store::mixed mixed 'mixed up'
  thrown $p many many std::runtime_error many 'after many'
  # By a function of the C++ library, in a header's function that may be inlined.
  thrown $p library library std::out_of_range library 'vector::_M_range_check: __n (which is 10) >= this->size() (which is 3)'
  thrown $p destructor destructor std::runtime_error guard::~guard 'in a destructor'
  ask "e['while_unwinding']"
  thrown $p again again std::out_of_range first 'thrown first'
  ask "[a['line'] for a in e['thrown_again_at']] == [$(line_of rethrow)]"
  thrown $p async async std::range_error later 'computed later'
  ask "[a['function'] for a in e['thrown_again_at']] == ['main']"
  # The program's own handler says nothing of the exception.
  thrown $p handler plain std::runtime_error plain 'bad number 1'
  # What is no class is shown itself.
  sketch $p number number 'uncaught int 42 in number()'
  ask "(e['type'], e['what'], e['value']) == ('int', None, '42')"
  sketch $p text text 'uncaught const char* "no such thing" in text()'
  ask "(e['type'], e['what'], e['value']) == ('const char*', None, 'no such thing')"
  sketch $p string string 'uncaught std::string "a string that is too long to be kept within the object" in string()'
  sketch $p terminate terminate 'std::terminate in finish(): no exception is active'
  ask "e is None and s['failure']['cause'] == 'terminate'"
  # The program handled it, and gave up by itself.
  sketch $p handled handled 'SIGABRT in handled()'
  ask "e is None and any('while an exception was being handled: std::runtime_error: bad number 1' in n for n in s['notes'])"
}
for o in 0 2; do
  try_most none throws-O$o
  try_others none throws-O$o
done
try_most soft recorded
if "$ETCH" record --source vpt -o vpt.etch -- ./throws-O2 >/dev/null 2>&1; then
  try_most vpt throws-O2
else
  echo "vpt is not here: not tried with it"
fi

# A slice begins at the throw, with its condition and its arguments, also where the stack has no more of it.
cat >slice.cpp <<'C'
struct problem { int code; explicit problem(int c) : code(c) {} };
static void f(int a)
{
    int n = a * 2;
    if (a)
        throw problem(n);
}
static void g(int a) noexcept { f(a); }
int main(int argc, char **)
{
    g(argc);
}
C
for o in 0 2; do
  "$ETCH" c++ -std=c++17 -g -O$o slice.cpp -o slice
  "$ETCH" record --source none -o slice.etch -- ./slice >/dev/null 2>&1 || true
  expect 0 "$ETCH" slice --json ./slice --failure slice.etch
  checks=$((checks + 1))
  python3 -c "
import json
lines = {s['place']['line']: s['distance'] for s in json.load(open('out'))['statements']}
assert lines[6] == 0 and lines[5] == 1 and lines[4] == 1, lines" || fail "slice of a throw, O$o"
done

# A C++ library that is part of the program itself is not listened to; the stack at the end tells most of it.
printf '#include <stdexcept>\nstatic void f(int n)\n{\n    if (n)\n        throw std::runtime_error("x");\n}\nint main(int c, char **)\n{\n    f(c);\n}\n' >static.cpp
if "$ETCH" c++ -g -static-libstdc++ -static-libgcc static.cpp -o static 2>/dev/null; then
  from=none program=static case=static
  "$ETCH" record --source none -o static.etch -- ./static >/dev/null 2>&1 || true
  expect 0 "$ETCH" sketch --json sketch.json ./static static.etch
  ask "s['failing_place']['line'] == 5 and s['headline'] == 'uncaught exception in f()' and e['type'] is None"
fi

# A C program that loads a C++ library for itself alone: the real functions are not among the libraries that the preloaded one is before.
printf '#include <stdexcept>\nextern "C" int work(int n)\n{\n    try {\n        if (n)\n            throw std::runtime_error("x");\n    } catch (const std::exception &) {\n        return 3;\n    }\n    return 0;\n}\n' >plugin.cpp
printf '#include <dlfcn.h>\n#include <stdlib.h>\nint main(void)\n{\n    int (*work)(int) = (int (*)(int))dlsym(dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL), "work");\n    return work(1) == 3 ? 0 : 1;\n}\n' >loader.c
"${ETCH_CC:-clang}" -x c++ -g -shared -fPIC plugin.cpp -o plugin.so -lstdc++
"${ETCH_CC:-clang}" -g loader.c -o loader -ldl
expect 0 ./loader
expect 0 "$ETCH" record --source none -o loader.etch -- ./loader
"${ETCH_CC:-clang}" -x c++ -g -shared -fPIC plugin.cpp -o plugin.so -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic 2>/dev/null && expect 0 "$ETCH" record --source none -o loader.etch -- ./loader

# The program does what it does without etch: output, and a million exceptions that are caught leave nothing behind.
for case in plain own noexcept handler pure again; do
  LC_ALL=C ./throws-O2 $case >plain.out 2>plain.err || true
  "$ETCH" record --source none -o run.etch -- ./throws-O2 $case >recorded.out 2>recorded.err || true
  grep -v '^etch record' recorded.err >recorded.own || true
  same plain.out recorded.out
  same plain.err recorded.own
done
printf 'int main()\n{\n    long s = 0;\n    for (int i = 0; i < 200000; i++)\n        try {\n            throw i;\n        } catch (int v) {\n            s += v;\n        }\n    return s != 19999900000;\n}\n' >caught.cpp
"$ETCH" c++ -g -O2 caught.cpp -o caught
expect 0 "$ETCH" record --source none -o caught.etch -- ./caught
checks=$((checks + 1))
[ "$(stat -c %s caught.etch)" -lt 100000 ] || fail "caught exceptions fill the bundle: $(stat -c %s caught.etch) bytes"
done_checking
