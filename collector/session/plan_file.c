/* SPDX-License-Identifier: MIT */
/* See plan_file.h. */
#include "collector/session/plan_file.h"

#include "proto/bundle.h"

int etch_plan_file_visit(const char *path, etch_plan_visitor *visit, void *context, struct etch_error *err)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    int status = -1;
    bool found = false;

    if (etch_bundle_open(&reader, path, err) < 0)
        return -1;
    while (!found && etch_bundle_next(reader, &item, err) < ETCH_BUNDLE_END)
        if (item.record && item.record->body_case == ETCH__RECORD__BODY_PLAN) {
            found = true;
            status = visit(context, item.record->plan, err);
        }
    if (!found)
        etch_error_set(err, "there is no plan in %s", path);
    etch_bundle_reader_free(reader);
    return status;
}
