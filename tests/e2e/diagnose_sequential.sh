#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Causes in programs of one thread. Wrong output begins at the statement that wrote it. The answer is the first branch that goes
# another way than in passing runs, or an outcome in a state that another branch left; not the check that noticed it. The input is
# the number of the run.
. "$(dirname "$0")/lib.sh"
has_watchpoints || skip "no hardware watchpoints"
export LC_ALL=C COLUMNS=120
cd "$work"
line() { grep -n "//@$2\b" "$1" | cut -d: -f1; } # FILE LABEL
answer() { # FIELD of the first predictor, or "lines", or "place": where it failed
  python3 -c 'import json,sys; d = json.load(open("sketch.json")); p = d["predictors"][0]
print(" ".join(str(s["line"]) for s in p["statements"]) if sys.argv[1] == "lines" else d["failing_place"]["line"] if sys.argv[1] == "place"
else p[sys.argv[1]])' "$1"
}
is() { # WANT GOT
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "'$2', not '$1'"
}
diagnose() { # PROGRAM [OPTION...]
  local program=$1
  shift
  expect 0 "$ETCH" diagnose --source soft --no-lab --time 200 --timeout 30 --json sketch.json "$@" "./$program"
}

# The total is wrong because a price was taken for a weight. That the total is too high is noticed by nobody.
cat >output.c <<'C'
#include <stdio.h>
#include <stdlib.h>

struct bill {
    char text[32];
    int total;
};
static struct bill bill;

__attribute__((noinline)) static void weigh(struct bill *b, int amount)
{
    b->total += amount * 9; //@weigh
}

__attribute__((noinline)) static void add(struct bill *b, int amount, int heavy)
{
    if (heavy) //@heavy
        weigh(b, amount);
    b->total += amount; //@add
}

int main(void)
{
    int run = atoi(getenv("ETCH_RUN"));

    for (int i = 0; i < 4; i++)
        add(&bill, i + run % 7, (run % 3 == 0) & (i == 2));
    snprintf(bill.text, sizeof(bill.text), "run %d total %d", run, bill.total);
    puts(bill.text); //@print
    return 0;
}
C
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g output.c -o "output$level"
  diagnose "output$level" --fails-if 'awk "{ exit \$4 == 6 + 4 * (\$2 % 7) }"'
  is "$(line output.c print)" "$(answer place)"
  is branch "$(answer kind)"
  is "$(line output.c heavy)" "$(answer lines)"
done

# A minus is an operator behind a bracket. Each test of the program goes either way in passing runs too.
cat >lexer.cpp <<'C'
#include <cstdlib>
#include <string>

class Lexer {
public:
    explicit Lexer(const std::string &text) : text_(text) {}
    int operators()
    {
        int n = 0;
        for (char c : text_) {
            if (c == '-' && !operand_) //@sign
                continue;
            if (c == ')') //@close
                operand_ = false;
            else
                operand_ = c != '-' && c != '+';
            n += c == '-' || c == '+';
        }
        return n;
    }

private:
    std::string text_;
    bool operand_ = false;
};

int main()
{
    static const char *const texts[] = {"(1+2)+3", "-4+5", "1-2", "(1)-2", "3--1"};
    static const int operators[] = {2, 1, 1, 1, 1};
    int run = std::atoi(std::getenv("ETCH_RUN")) % 5;
    int n = Lexer(texts[run]).operators();
    if (n != operators[run]) //@check
        return 3; //@fail
    return 0;
}
C
"$ETCH" c++ -std=c++17 --record -O0 -g lexer.cpp -o lexer
diagnose lexer
is branch "$(answer kind)"
lines=$(answer lines)
case " $lines " in
*" $(line lexer.cpp sign) "* | *" $(line lexer.cpp close) "*) ;;
*) fail "the lines $lines" ;;
esac
case " $lines " in *" $(line lexer.cpp check) "*) fail "the answer is the check" ;; esac
checks=$((checks + 1))
done_checking
