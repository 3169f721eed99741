/* SPDX-License-Identifier: MIT */
/* Verdicts and their names; see verdict.h. */
#include "sketch/verdict.h"

#include <string.h>

static const char *const names[] = {"", "pass", "fail", "hang"};

const char *etch_verdict_name(enum etch_verdict verdict)
{
    return names[verdict];
}

enum etch_verdict etch_verdict_of(const char *name)
{
    if (strcmp(name, "pass") == 0)
        return ETCH_VERDICT_PASS;
    return strcmp(name, "hang") == 0 ? ETCH_VERDICT_HANG : ETCH_VERDICT_FAIL;
}
