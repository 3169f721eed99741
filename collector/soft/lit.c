/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime at a module's start: which of its functions are recorded, the budget, and the door
 * by which etch can switch the recorder on later. */
#include "collector/soft/budget.h"

#define DEFAULT_PERMILLE 30u /* a program that records itself; etch record asks for all of it */

extern struct etch_soft_lit first[] __asm__("__start_" ETCH_SOFT_LIT_SECTION)
    __attribute__((weak, visibility("hidden")));
extern struct etch_soft_lit last[] __asm__("__stop_" ETCH_SOFT_LIT_SECTION) __attribute__((weak, visibility("hidden")));

/* "3%", "2.5%", "0", "off". Anything else is the default. */
uint32_t etch_soft_read_budget(const char *text)
{
    uint32_t whole = 0, tenth = 0;

    if (!text)
        return DEFAULT_PERMILLE;
    if (text[0] == 'o' && text[1] == 'f' && text[2] == 'f' && !text[3])
        return ETCH_SOFT_UNBOUNDED;
    if (*text < '0' || *text > '9')
        return DEFAULT_PERMILLE;
    for (; *text >= '0' && *text <= '9' && whole < 1000; text++)
        whole = whole * 10 + (uint32_t)(*text - '0');
    if (*text == '.' && text[1] >= '0' && text[1] <= '9')
        tenth = (uint32_t)(text[1] - '0');
    return whole < 100 ? whole * 10 + tenth : ETCH_SOFT_UNBOUNDED;
}

/* Is the name with this number one of a list: "f,g"? */
static bool is_listed(const char *list, uint32_t name)
{
    while (list && *list) {
        size_t n = 0;

        while (list[n] && list[n] != ',')
            n++;
        if (n && etch_soft_name(list, n) == name)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

void etch_soft_light(char *const *environment)
{
    const char *keep = etch_soft_variable(environment, ETCH_SOFT_KEEP_VARIABLE);
    const char *dark = etch_soft_variable(environment, ETCH_SOFT_DARK_VARIABLE);

    for (struct etch_soft_lit *lit = first; lit && lit < last; lit++) {
        lit->lit = 1;
        lit->kept = is_listed(keep, lit->name);
        if (is_listed(dark, lit->name))
            etch_soft_go_dark(lit, 0);
    }
}

static struct etch_soft_door door __attribute__((section(ETCH_SOFT_DOOR_SECTION), used));

void etch_soft_open_door(bool secure)
{
    struct etch_soft_recorder *s = &etch_soft_recorder;

    door.version = ETCH_SOFT_VERSION;
    door.secure = secure;
    door.on = (uintptr_t)&etch_soft_on;
    door.lit = (uintptr_t)first;
    door.lit_end = (uintptr_t)last;
    door.request = (uintptr_t)&s->request;
    door.pool = (uintptr_t)&s->pool;
    *(volatile uint64_t *)&door.magic = ETCH_SOFT_DOOR_MAGIC;
}
