/* SPDX-License-Identifier: MIT */
/* A script of orders from a stranger. An order that was understood is understood again as it is printed. */
#include "collector/lab_script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct etch_lab_constraint *order)
{
    struct etch_lab_script again;
    char text[2048], same[2048];
    struct etch_error err;

    etch_lab_constraint_print(order, false, text, sizeof(text));
    if (etch_lab_script_parse(&again, text, strlen(text), &err) < 0 || again.orders.n != 1)
        abort();
    etch_lab_constraint_print(&again.orders.v[0], false, same, sizeof(same));
    if (strcmp(text, same) != 0)
        abort();
    etch_lab_script_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* a byte behind the text is a finding */
    char *moment = strndup((const char *)data, size);
    struct etch_lab_named named;
    bool any_thread;
    struct etch_lab_script script;
    struct etch_error err;

    if (!text || !moment) {
        free(text);
        free(moment);
        return -1;
    }
    if (etch_lab_named_parse(&named, moment, &any_thread, &err) == 0 && (!named.line || !named.visit))
        abort();
    free(moment);
    memcpy(text, data, size);
    if (etch_lab_script_parse(&script, text, size, &err) == 0)
        for (size_t i = 0; i < script.orders.n; i++)
            check_again(&script.orders.v[i]);
    etch_lab_script_release(&script);
    free(text);
    return 0;
}
