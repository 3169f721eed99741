/* SPDX-License-Identifier: MIT */
/* The watches of a native recording: as the user wrote them, or as a plan has them; see watch_list.h. */
#include "collector/native/watch_list.h"
#include "collector/native/library.h"
#include "collector/session/plan_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int take_words(struct native *n, struct etch_error *err)
{
    const struct etch_record_options *o = n->options;
    uint32_t slots = o->slots ? o->slots : ETCH_WATCH_SLOTS;

    for (size_t i = 0; i < o->n_watches; i++) {
        struct native_watch *watch = &n->list[i];

        if (etch_place_parse(&watch->place, o->watches[i], err) < 0 ||
            etch_place_suits_debug_register(&watch->place, err) < 0)
            return -1;
        if (o->watch_names[i])
            snprintf(watch->place.text, sizeof(watch->place.text), "%s", o->watch_names[i]);
        watch->id = (uint32_t)i + 1;
        watch->set = (uint32_t)(i / slots);
        watch->size = watch->place.size;
    }
    n->n_list = o->n_watches;
    n->sets = o->n_watches ? (uint32_t)((o->n_watches + slots - 1) / slots) : 1;
    return 0;
}

/* A plan's watch: a global by its address in the file, or what an instruction of the file will use. */
static int take_planned(struct native *n, const Etch__PlanWatch *planned, uint32_t set, struct etch_error *err)
{
    struct native_watch *watch = &n->list[n->n_list];
    struct etch_place *place = &watch->place;
    const struct native_library *library;

    if (n->n_list == ETCH_RECORD_MAX_WATCHES)
        return etch_error_set(err, "the plan has more than %u watches", ETCH_RECORD_MAX_WATCHES);
    snprintf(place->text, sizeof(place->text), "%s", planned->name);
    place->size = planned->size > 8 ? 8 : planned->size; /* what one debug register covers */
    place->reads = planned->reads;
    place->writes = true;
    place->in_file = true;
    place->site = place->by_operand = !planned->global;
    place->address = planned->global ? planned->global : planned->site;
    library = etch_native_library_of(n, place->address);
    watch->added = library ? library->added : 0;
    place->address -= watch->added;
    if (place->site && etch_place_operand_parse(&place->operand, planned->site_operand, err) < 0)
        return etch_error_prefix(err, "the plan's watch '%s'", planned->name);
    watch->id = (uint32_t)n->n_list + 1;
    watch->set = set;
    watch->size = place->size;
    if (planned->global && planned->site && etch_native_library_of(n, planned->site) == library)
        watch->found_at = planned->site - watch->added;
    n->n_list++;
    return 0;
}

static int take_plan(void *context, const Etch__Plan *plan, struct etch_error *err)
{
    struct native *n = context;

    n->sets = plan->n_sets ? (uint32_t)plan->n_sets : 1;
    n->plan_build_id_size = plan->build_id.len <= sizeof(n->plan_build_id) ? plan->build_id.len : 0;
    memcpy(n->plan_build_id, plan->build_id.data, n->plan_build_id_size);
    if (etch_native_libraries_take(n, plan, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_sets; i++)
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++)
            if (take_planned(n, plan->sets[i]->watches[k], (uint32_t)i, err) < 0)
                return -1;
    return 0;
}

static int read_plan(struct native *n, struct etch_error *err)
{
    if (!n->options->plan)
        return 0;
    if (n->options->n_watches)
        return etch_error_set(err, "--plan and --watch do not go together: the plan says what to watch");
    return etch_plan_file_visit(n->options->plan, take_plan, n, err);
}

/* Which watches this run takes: as told, or the next after the run that the output file holds. */
void etch_native_set_choose(struct native *n)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;
    const Etch__Record__BodyCase wanted = ETCH__RECORD__BODY_PROGRAM;

    if (n->sets <= 1)
        return;
    if (n->options->set_given) {
        n->set = n->options->set % n->sets;
        return;
    }
    if (access(n->options->output, R_OK) < 0 || etch_bundle_open(&reader, n->options->output, &ignored) < 0)
        return;
    etch_bundle_want(reader, &wanted, 1);
    while (etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END)
        if (item.record && item.record->body_case == ETCH__RECORD__BODY_PROGRAM) {
            n->set = (item.record->program->plan_set + 1) % n->sets;
            break;
        }
    etch_bundle_reader_free(reader);
}

int etch_native_watches_choose(struct native *n, struct etch_error *err)
{
    return take_words(n, err) < 0 || read_plan(n, err) < 0 ? -1 : 0;
}
