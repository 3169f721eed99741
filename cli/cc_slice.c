/* SPDX-License-Identifier: MIT */
/* See cc_slice.h. */
#include "cli/cc_slice.h"

#include "proto/bundle.h"

#include <stdlib.h>
#include <string.h>

static bool add_statement(struct etch_cc_slice *slice, const Etch__Statement *s)
{
    struct etch_instrument_scope scope = {strdup(s->place ? s->place->function : ""),
                                          strdup(s->place ? s->place->file : "")};

    if (scope.function && scope.file && etch_array_push(&slice->ids, s->id) && etch_array_push(&slice->scopes, scope))
        return true;
    free(scope.function);
    free(scope.file);
    return false;
}

static bool is_planned(const Etch__Plan *plan, uint32_t id)
{
    for (size_t i = 0; i < plan->n_statements; i++)
        if (plan->statements[i] == id)
            return true;
    return false;
}

static void keep_planned(struct etch_cc_slice *slice, size_t from, const Etch__Plan *plan)
{
    size_t kept = from;

    for (size_t i = from; i < slice->scopes.n; i++) {
        if (is_planned(plan, slice->ids.v[i])) {
            slice->ids.v[kept] = slice->ids.v[i];
            slice->scopes.v[kept++] = slice->scopes.v[i];
            continue;
        }
        free(slice->scopes.v[i].function);
        free(slice->scopes.v[i].file);
    }
    slice->scopes.n = slice->ids.n = kept;
}

int etch_cc_slice_read(struct etch_cc_slice *slice, const char *path, struct etch_error *err)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    size_t from = slice->scopes.n;
    bool whole = true;

    if (etch_bundle_open(&reader, path, err) < 0)
        return etch_error_advise(err, "etch slice PROGRAM --at FILE:LINE --plan %s writes a slice", path);
    while (whole && etch_bundle_next(reader, &item, err) < ETCH_BUNDLE_END) {
        const Etch__Record *r = item.record;

        if (r && r->body_case == ETCH__RECORD__BODY_SLICE)
            for (size_t i = 0; i < r->slice->n_statements && whole; i++)
                whole = add_statement(slice, r->slice->statements[i]);
        else if (r && r->body_case == ETCH__RECORD__BODY_PLAN)
            keep_planned(slice, from, r->plan);
    }
    etch_bundle_reader_free(reader);
    if (!whole)
        return etch_error_no_memory(err);
    if (slice->scopes.n > from)
        return 0;
    etch_error_set(err, "there is no slice in %s", path);
    return etch_error_advise(err, "etch slice PROGRAM --at FILE:LINE --plan %s writes a slice", path);
}

void etch_cc_slice_release(struct etch_cc_slice *slice)
{
    for (size_t i = 0; i < slice->scopes.n; i++) {
        free(slice->scopes.v[i].function);
        free(slice->scopes.v[i].file);
    }
    etch_array_free(&slice->scopes);
    etch_array_free(&slice->ids);
}
