/* SPDX-License-Identifier: MIT */
/* Library functions by name. Names are compared whole, because a function of the program may start like any of them. */
#include "slicer/instrument/model.h"

#include <string.h>

struct waiting {
    const char *name;
    unsigned parameters;
    unsigned stamps; /* enum stamp_place */
};

static const struct waiting waiting[] = {
#define WAITING(name, parameters) {name, parameters, STAMP_BEFORE | STAMP_AFTER},
#define RELEASING(name, parameters) {name, parameters, STAMP_BEFORE},
#define TRYING(name, parameters) {name, parameters, STAMP_AFTER},
#define LOCKING(name, parameters) {name, parameters, STAMP_IF_HELD | STAMP_AFTER},
#include "slicer/instrument/waiting_calls.def"
#undef WAITING
#undef RELEASING
#undef TRYING
#undef LOCKING
};

/* A declaration of old C does not say which parameters there are. */
static bool fits(LLVMTypeRef type, unsigned parameters)
{
    unsigned n = LLVMCountParamTypes(type);

    return n == parameters || (n == 0 && LLVMIsFunctionVarArg(type));
}

unsigned etch_stamps_of(const char *name, LLVMTypeRef type)
{
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        if (strcmp(name, waiting[i].name) == 0)
            return fits(type, waiting[i].parameters) ? waiting[i].stamps : 0;
    return 0;
}

static const char *const quiet[] = {
#define QUIET(name) name,
#include "slicer/instrument/quiet_calls.def"
#undef QUIET
};

static bool begins_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

bool etch_calls_nobody(const char *name)
{
    if (begins_with(name, "llvm.") || begins_with(name, "etch_soft_"))
        return true;
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
        if (strcmp(name, quiet[i]) == 0)
            return true;
    return false;
}
