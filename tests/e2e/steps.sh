# SPDX-License-Identifier: MIT
# A program whose last step is known after any death, for the tests that kill it. The program writes into a file that outlives it
# which step was begun last and which was done last. The way of a step depends on its number alone, so the replayed ways tell
# which steps they were.

# step_source: the C text of a step. Ways are marked @0, @1, @2.
step_source() {
  cat <<'C'
/* A step is begun before its branch, and done behind it. */
static volatile unsigned long *seen;

static int __attribute__((noinline)) step(unsigned long i)
{
    seen[0] = i;
    if (i % 7 == 3)
        __asm__ volatile("nop # way 1"); /* @1 */
    else if (i % 5 == 2)
        __asm__ volatile("nop # way 2"); /* @2 */
    else
        __asm__ volatile("nop # way 0"); /* @0 */
    return (int)(i & 1);
}
C
}

# write_last: makes last.py. `last.py SOURCE LINES BEGUN DONE` checks that the last lines are those of the last steps.
write_last() {
  cat >last.py <<'P'
import re, sys
source, lines, begun, done = sys.argv[1:]
begun, done = int(begun), int(done)
way_of = {}
for number, text in enumerate(open(source), 1):
    found = re.search('@([012]) ', text)
    if found:
        way_of[number] = int(found.group(1))
ways = [way_of[int(n)] for n in re.findall(r'count\.c:(\d+)', open(lines).read()) if int(n) in way_of][-105:]
expected = lambda i: 1 if i % 7 == 3 else 2 if i % 5 == 2 else 0
if len(ways) < min(35, done - 1):
    sys.exit('only %d steps were replayed of %d' % (len(ways), done))
for last in (done - 1, done, begun):
    if all(expected(last - k) == way for k, way in enumerate(reversed(ways)) if last - k > 0):
        sys.exit(0)
sys.exit('the last steps that were replayed are not those that ran: begun %d, done %d, ways %s' % (begun, done, ways[-40:]))
P
}
