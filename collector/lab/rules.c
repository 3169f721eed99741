/* SPDX-License-Identifier: MIT */
/* Orders to enforce. A thread that is about to do what must come second is held back until the first has come. */
#include "collector/lab/runtime.h"

static struct {
    uint32_t first, then; /* visits so far */
    bool first_came, then_came;
} rule_state[ETCH_LAB_RULES];

static bool count_visit(const struct etch_lab_moment *m, uint32_t thread, uint64_t site, uint32_t *visits)
{
    return m->thread == thread && m->site == site && ++*visits == m->visit;
}

void lab_rules_follow(uint32_t thread, uint64_t site)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        rule_state[i].first_came |= count_visit(&lab->rules[i].first, thread, site, &rule_state[i].first);
        if (count_visit(&lab->rules[i].then, thread, site, &rule_state[i].then)) {
            rule_state[i].then_came = true;
            lab->kept += rule_state[i].first_came;
        }
    }
}

bool lab_rules_hold(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        const struct etch_lab_moment *then = &lab->rules[i].then;

        if (!rule_state[i].first_came && then->thread == thread && then->site == lab->thread[thread].site &&
            rule_state[i].then + 1 == then->visit)
            return true;
    }
    return false;
}

bool lab_rules_await(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++)
        if (!rule_state[i].first_came && lab->rules[i].first.thread == thread &&
            lab_rules_hold(lab->rules[i].then.thread))
            return true;
    return false;
}

void lab_rules_end(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++)
        rule_state[i].first_came |= !lab->rules[i].first.site && lab->rules[i].first.thread == thread;
}
