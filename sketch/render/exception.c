/* SPDX-License-Identifier: MIT */
/* The exception that a program ended with, as JSON; the same in etch's own format and in SARIF. */
#include "sketch/render/jansson.h"
#include "sketch/render/model.h"

static json_t *place_or_null(const Etch__Place *place, bool *failed)
{
    return place ? etch_json_place(place, failed) : json_null();
}

static json_t *text_or_null(const char *text, bool known)
{
    return known ? etch_json_text(text) : json_null();
}

json_t *etch_json_exception(const Etch__Failure *failure, bool *failed)
{
    const Etch__Exception none = ETCH__EXCEPTION__INIT;
    const Etch__Exception *e = failure && failure->exception ? failure->exception : &none;
    bool reported = e->said_case == ETCH__EXCEPTION__SAID_WHAT;
    const char *type = etch_render_string(e->type), *number = etch_render_string(e->number);
    json_t *o, *again;

    if (!failure || failure->cause != ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION)
        return json_null();
    o = json_object();
    again = json_array();
    etch_json_set(o, "type", text_or_null(type, type[0]), failed);
    etch_json_set(o, "what", text_or_null(reported ? e->what : "", reported && !e->is_text), failed);
    etch_json_set(o, "value", reported && e->is_text ? etch_json_text(e->what) : text_or_null(number, number[0]),
                  failed);
    etch_json_set(o, "thrown_at", place_or_null(e->thrown_at, failed), failed);
    for (size_t i = 0; i < e->n_again_at; i++)
        etch_json_push(again, etch_json_place(e->again_at[i], failed), failed);
    etch_json_set(o, "thrown_again_at", again, failed);
    etch_json_set(o, "stopped_at", place_or_null(e->stopped_at, failed), failed);
    etch_json_set(o, "while_unwinding", json_boolean(e->on_their_way), failed);
    return o;
}
