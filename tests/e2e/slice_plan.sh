#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The plan: only shared locations, none twice, at most as many in a set as there are slots; globals by their address, others by
# an instruction that really has that operand; and every access of a slice is found in the code, or it says why not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
source=$ETCH_SOURCE/tests/programs/plan.c
line=$(grep -n '//@fail' "$source" | cut -d: -f1)
for level in -O0 -O2; do
  "$ETCH" cc $level "$source" -o program
  "$ETCH" slice program --at "plan.c:$line" --sigma 6 --slots 2 --plan out.plan --json >out.json
  nm program >symbols
  objdump -d --no-show-raw-insn program >code
  python3 - $level <<'P'
import json, re, sys
level = sys.argv[1]
out = json.load(open("out.json"))
plan = out["plan"]
watches = [w for s in plan["sets"] for w in s["watches"]]
assert all(1 <= len(s["watches"]) <= 2 for s in plan["sets"]), plan["sets"]
names = [w["name"] for w in watches]
assert len(set((w["name"], w["global"], w["site"]) for w in watches)) == len(watches), names
for want in ("q->used", "q->slots", "limit", "counts[2]"):
    assert want in names, (level, want, names)
assert not any(n in names for n in ("local", "i", "q", "argc")), names
symbols = {l.split()[2]: int(l.split()[0], 16) for l in open("symbols") if len(l.split()) == 3}
code = {}
for l in open("code"):
    m = re.match(r"\s*([0-9a-f]+):\t(.*)", l)
    if m:
        code[int(m.group(1), 16)] = m.group(2)
for w in watches:
    address = int(w["global"], 16)
    if w["name"] == "limit":
        assert address == symbols["limit"] and w["size"] == 4, w
    elif w["name"] == "counts[2]":
        assert address == symbols["counts"] + 8 and w["size"] == 4, w
    elif not address:
        site, (base, index, scale, disp) = int(w["site"], 16), w["site_operand"].split(",")
        text = code[site]
        hexed = "" if int(disp) == 0 else "%#x" % int(disp)
        operand = hexed + "(%" + base + ("" if not index else ",%" + index + "," + scale) + ")"
        assert operand in text, (level, w, text)
        if w["name"] == "q->slots":
            assert (int(disp), w["size"]) == (8, 8), w
mapped = unmapped = 0
for s in out["statements"]:
    for o in s["operands"]:
        if int(o["address"], 16):
            assert int(o["address"], 16) in code, o
            mapped += 1
        else:
            assert o["unmapped"], o
            assert level == "-O2" or not o["shared"], o
            unmapped += 1
assert out["statements"][0]["roles"] == ["failure"], out["statements"][0]
spans = [(int(r["start"], 16), int(r["end"], 16)) for r in plan["track"]]
assert spans and all(a < b for a, b in spans)
site = [int(o["address"], 16) for o in out["statements"][0]["operands"] if int(o["address"], 16)]
assert all(any(a <= x < b for a, b in spans) for x in site), (site, spans)
print("%s: %d watches in %d sets, %d accesses in the code, %d not" % (level, len(watches), len(plan["sets"]), mapped, unmapped))
P
done
"$ETCH" info --records out.plan | grep -q '"plan":{"program"' || { echo "no plan in the file"; exit 1; }

# Two local variables on one line: each has the instruction that uses its own place on the stack.
cat >locals.c <<'C'
int same(unsigned item, unsigned i)
{
    return item / 16 == i; //@fail
}
int main(int argc, char **argv)
{
    (void)argv;
    return same((unsigned)argc, 3);
}
C
"$ETCH" cc -O0 -g locals.c -o locals
"$ETCH" slice locals --at locals.c:3 --json >locals.json
objdump -d --no-show-raw-insn --disassemble=same locals >code
python3 - <<'P'
import json, re
operands = {o["name"]: o["address"] for o in json.load(open("locals.json"))["statements"][0]["operands"]}
code = {int(m.group(1), 16): m.group(2) for m in (re.match(r"\s*([0-9a-f]+):\t(.*)", l) for l in open("code")) if m}
stores = [re.search(r"(-0x[0-9a-f]+\(%rbp\))", c).group(1) for c in code.values() if re.match(r"mov\s+%e[ds]i,-", c)]
for name, place in zip(("item", "i"), stores): # the arguments are kept in their order
    text = code[int(operands[name], 16)]
    assert place in text, (name, place, text, operands)
print("locals found")
P
