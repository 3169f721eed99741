#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ci/explore.sh: what it says of a test that passes, that fails, that it cannot try; and the action around it.
. "$(dirname "$0")/lib.sh"
export PATH=$ETCH_BUILD:$PATH HOME=$work
cd "$work"
cat >race.cpp <<'END'
#include <cstring>
#include <thread>
int count;
int main(int argc, char **argv)
{
    std::thread t([] { int before = count; count = before + 1; });
    if (argc > 1 && strcmp(argv[1], "two words") == 0)
        t.join();
    int before = count;
    count = before + 1;
    if (t.joinable())
        t.join();
    return count != 2;
}
END
etch c++ -std=c++17 -g -O2 -pthread race.cpp -o race
export ETCH_CI_OUT=results ETCH_CI_SCHEDULES=100
recipe=$ETCH_SOURCE/ci/explore.sh

printf '# joined first\n\n./race "two words"\n' >tests.txt
expect 0 bash "$recipe" tests.txt
has out 'passes  ./race "two words"'
[ ! -e results/3.sarif ] || fail "a test that passes has SARIF"

printf './race' >tests.txt
expect 1 bash "$recipe" tests.txt
has out "FAILS   ./race"
has results/1.html "<html"
expect 0 etch replay results/1.schedule.etch
python3 - results/1.sarif <<'END' || fail "no finding in the SARIF file"
import json, sys
found = json.load(open(sys.argv[1]))["runs"][0]["results"]
place = found[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
assert place.endswith("race.cpp"), place
END

printf './race\n/bin/true\n' >tests.txt
expect 2 bash "$recipe" tests.txt
has out "UNKNOWN /bin/true"
has out "1 failed, 1 could not be tried"
expect 2 bash "$recipe" no-such-file

# The action: each of its inputs is used, each variable that it sets is one of the recipe or of its own commands, and it names the recipe.
action=$ETCH_SOURCE/ci/action.yml
for input in $(sed -n '/^inputs:/,/^runs:/s/^  \([a-z]*\):$/\1/p' "$action"); do has "$action" "inputs.$input"; done
for variable in $(grep -o 'ETCH_CI_[A-Z]*' "$action" | sort -u); do has "$recipe" "\${$variable:-"; done
has "$action" '$GITHUB_ACTION_PATH/explore.sh'
done_checking
