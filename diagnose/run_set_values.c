/* SPDX-License-Identifier: MIT */
/* Values that are recovered from the end of a run: the core they come from, and the policy that they pass. */
#include "diagnose/run_set.h"
#include "diagnose/run_set_model.h"

#include "base/log.h"
#include "collector/policy.h"

#include <string.h>

int etch_run_set_join_core(struct etch_run_set *s, const char *path, const char *core, struct etch_error *err)
{
    for (size_t i = 0; core && i < s->bundles.n; i++) {
        struct etch_run_bundle *b = &s->bundles.v[i];

        if (b->core || strcmp(b->path, path) != 0)
            continue;
        b->core = strdup(core);
        if (!b->core)
            return etch_error_no_memory(err);
    }
    return 0;
}

/* A policy that cannot be read hides everything. */
bool etch_run_set_hides(void *context, const char *name, uint64_t value)
{
    struct etch_run_set *s = context;
    struct etch_error why;

    if (!s->policy && etch_policy_find(&s->policy, NULL, &why) < 0) {
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_WARN, "no values are recovered: %s", why.what);
        s->policy = NULL;
        return true;
    }
    return etch_policy_decide(s->policy, ETCH_POLICY_VALUE, name, etch_policy_type(value), NULL) != ETCH_POLICY_ALLOW;
}
