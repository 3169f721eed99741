/* SPDX-License-Identifier: MIT */
/* See lab_file.h: the texts about a run in the lab. */
#include "base/function_name.h"
#include "base/path.h"
#include "base/printable.h"
#include "binary/symbols.h"
#include "cli/lab_file.h"
#include "collector/lab_journal.h"

#include <inttypes.h>
#include <string.h>

#define FRAMES_SHOWN 10 /* of a stack in a report about the heap */

/* ---- Places of the threads ---- */

static const char *wait_name(uint32_t wait)
{
    static const char *const names[] = {"",
                                        "waits for a mutex",
                                        "waits for a read-write lock",
                                        "waits for a condition",
                                        "waits for a semaphore",
                                        "waits at a barrier",
                                        "waits for a thread to end",
                                        "waits for an initialisation by another thread",
                                        "waits for a futex",
                                        "sleeps",
                                        "waits for a descriptor",
                                        "waits for a child process"};

    return wait < sizeof(names) / sizeof(names[0]) ? names[wait] : "waits";
}

/* Finds the line of the user's own code at `address`: the innermost inlined function that is not in a system header.
 * Returns false if there is none. */
static bool find_line(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                      struct etch_frame *frame)
{
    struct etch_location at;

    memset(&at, 0, sizeof(at));
    if (!symbols || address <= image->start || address - image->start >= image->size)
        return false;
    etch_symbols_find(symbols, image, address - 1, &at); /* the call itself, not the return address */
    for (const struct etch_frame *f = &at.frame; f; f = f->caller)
        if (f->file && f->line && !etch_file_is_system(f->file)) {
            *frame = *f;
            return true;
        }
    return false;
}

static void print_place(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_thread *t,
                        FILE *out)
{
    uint64_t depth = t->depth < ETCH_LAB_FRAMES ? t->depth : ETCH_LAB_FRAMES;
    struct etch_frame frame;
    bool found = find_line(symbols, image, t->site, &frame);
    char brief[256];

    while (!found && depth > 0)
        found = find_line(symbols, image, t->frames[--depth], &frame);
    if (!found) {
        fprintf(out, "0x%" PRIx64, t->site);
        return;
    }
    fprintf(out, "%s:%u", etch_shown(etch_path_name(frame.file)), frame.line);
    if (frame.function)
        fprintf(out, " %s", etch_shown(etch_function_short(frame.function, brief, sizeof(brief))));
}

static void print_block_end(struct etch_symbols *symbols, const Etch__Image *image, const char *what, uint32_t thread,
                            uint64_t site, FILE *out)
{
    struct etch_frame frame;

    if (!site)
        return;
    fprintf(out, ", %s by T%u", what, thread + 1);
    if (!find_line(symbols, image, site, &frame))
        return; /* the block is made by a library, for example in operator new */
    fprintf(out, " at %s:%u", etch_shown(etch_path_name(frame.file)), frame.line);
}

/* Prints the lines of the user's own code at one address of a stack, inlined ones first. */
static unsigned print_frames(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address, const char *what,
                             unsigned n, FILE *out)
{
    struct etch_location at;
    char brief[256];

    memset(&at, 0, sizeof(at));
    if (!symbols || address <= image->start || address - image->start >= image->size)
        return n;
    etch_symbols_find(symbols, image, address - 1, &at);
    for (const struct etch_frame *f = &at.frame; f && n < FRAMES_SHOWN; f = f->caller) {
        if (!f->file || !f->line || etch_file_is_system(f->file))
            continue;
        fprintf(out, "    %-7s #%u %s:%u", n ? "" : what, n, etch_shown(etch_path_name(f->file)), f->line);
        if (f->function)
            fprintf(out, " %s", etch_shown(etch_function_short(f->function, brief, sizeof(brief))));
        fputc('\n', out);
        n++;
    }
    return n;
}

static void print_stack(struct etch_symbols *symbols, const Etch__Image *image, const uint64_t *stack, const char *what,
                        FILE *out)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < ETCH_LAB_STACK && stack[i]; i++)
        n = print_frames(symbols, image, stack[i], what, n, out);
}

/* The stacks of the access, of the allocation and of the release. */
static void print_stacks(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_shared *s,
                         FILE *out)
{
    const struct etch_lab_thread *t = &s->thread[s->running < ETCH_LAB_THREADS ? s->running : 0];
    uint64_t depth = t->depth < ETCH_LAB_FRAMES ? t->depth : ETCH_LAB_FRAMES, access[ETCH_LAB_STACK] = {t->site};

    for (uint32_t i = 1; i < ETCH_LAB_STACK && depth > 0; i++)
        access[i] = t->frames[--depth];
    print_stack(symbols, image, access, "access", out);
    print_stack(symbols, image, s->misuse_made_stack, "made", out);
    print_stack(symbols, image, s->misuse_freed_stack, "freed", out);
}

/* Prints the misused block or mutex. */
static void print_block(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_shared *s,
                        FILE *out)
{
    bool lock = s->misuse == ETCH_LAB_DESTROYED_HELD || s->misuse == ETCH_LAB_AFTER_DESTROY;

    if (lock)
        fprintf(out, "  mutex at 0x%" PRIx64, s->misuse_address);
    else
        fprintf(out, "  byte %" PRId64 " of a block of %" PRIu64 " bytes", s->misuse_offset, s->misuse_size);
    print_block_end(symbols, image, "made", s->misuse_made_by, s->misuse_made, out);
    print_block_end(symbols, image, lock ? "destroyed" : "freed", s->misuse_freed_by, s->misuse_freed, out);
    fputc('\n', out);
    if (!lock)
        print_stacks(symbols, image, s, out);
}

/* A place in a run, with symbols of its own. */
static void print_site(const struct etch_lab_shared *s, const struct etch_lab_thread *at, const char *twin, FILE *out)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;

    image.path = (char *)twin;
    image.start = s->base;
    image.size = s->end - s->base;
    image.prot = 5;
    print_place(symbols, &image, at, out);
    etch_symbols_free(symbols);
}

static void print_hard(const struct etch_lab_shared *s, FILE *out)
{
    const char *made = etch_lab_call_name(s->misfit_call), *kept = etch_lab_call_name(s->misfit_answer);

    switch (s->misfit) {
    case ETCH_LAB_HAS_ENDED:
        fprintf(out, "T%u was to run, but has ended", s->desync_thread + 1);
        break;
    case ETCH_LAB_NOT_MADE:
        fprintf(out, "T%u was to run, but does not exist", s->desync_thread + 1);
        break;
    case ETCH_LAB_OTHER_CALL:
        fprintf(out, "T%u makes the call %s, but the recorded run made the call %s", s->desync_thread + 1, made, kept);
        break;
    case ETCH_LAB_NO_ANSWER:
        fprintf(out, "T%u makes the call %s, but the recorded run made no further call", s->desync_thread + 1, made);
        break;
    case ETCH_LAB_WRONG_SIZE:
        fprintf(out, "T%u makes the call %s with less room than the recorded run", s->desync_thread + 1, made);
        break;
    case ETCH_LAB_DESCRIPTOR_TAKEN:
        fprintf(out, "T%u is to get descriptor %d, but has it already", s->desync_thread + 1, s->misfit_fd);
        break;
    default:
        fprintf(out, "T%u was to run, but cannot", s->desync_thread + 1);
    }
}

void etch_lab_print_desync(const struct etch_lab_result *result, const char *twin, FILE *out)
{
    const struct etch_lab_shared *s = result->shared;
    struct etch_lab_thread strayed = {.site = s->strayed_site};

    if (s->strayed) {
        fprintf(out, "soft desync  at point %" PRIu64 ": T%u came to ", s->strayed_point + 1, s->strayed_thread + 1);
        print_site(s, s->strayed_site ? &strayed : &s->thread[s->strayed_thread], twin, out);
        fprintf(out, " on another way than in the recorded run\n");
    }
    if (result->end != ETCH_LAB_UNLIKE)
        return;
    fprintf(out, "hard desync  at point %" PRIu64 ": ", s->points + 1);
    print_hard(s, out);
    if (s->desync_thread < s->threads && s->misfit != ETCH_LAB_HAS_ENDED) {
        fprintf(out, "; it is at ");
        print_site(s, &s->thread[s->desync_thread], twin, out);
    }
    fputc('\n', out);
}

/* The first order that was not kept. */
static uint32_t first_unkept(const struct etch_lab_shared *s)
{
    for (uint32_t i = 0; i < s->n_rules && i < ETCH_LAB_MOST_RULES; i++)
        if (s->rule_state[i] != 3)
            return s->unkept && s->outcome == ETCH_LAB_INFEASIBLE ? s->unkept - 1 : i;
    return UINT32_MAX;
}

static void print_missing(const struct etch_lab_shared *s, uint32_t thread, const struct etch_lab_named *m,
                          const char *twin, FILE *out)
{
    char text[1024];

    etch_lab_named_print(m, true, text, sizeof(text));
    fprintf(out, "             %s never came", etch_shown(text));
    if (thread >= s->threads) {
        fprintf(out, ": no such thread began");
    } else if (s->thread[thread].dead) {
        fprintf(out, ": the thread had ended");
    } else {
        fprintf(out, ": the thread is at ");
        print_site(s, &s->thread[thread], twin, out);
    }
    fputc('\n', out);
}

void etch_lab_print_unkept(const struct etch_lab_result *result, const struct etch_lab_script *script, const char *twin,
                           FILE *out)
{
    const struct etch_lab_shared *s = result->shared;
    uint32_t i = first_unkept(s);
    char text[2048];

    if (i >= script->orders.n)
        return;
    etch_lab_constraint_print(&script->orders.v[i], true, text, sizeof(text));
    fprintf(out, "hard desync  order %u of %zu was not kept: %s\n", i + 1, script->orders.n, etch_shown(text));
    if (!(s->rule_state[i] & 1))
        print_missing(s, s->rule_thread[i][0], &script->orders.v[i].first, twin, out);
    if (!(s->rule_state[i] & 2) && s->outcome != ETCH_LAB_INFEASIBLE)
        print_missing(s, s->rule_thread[i][1], &script->orders.v[i].then, twin, out);
}

void etch_lab_print_threads(const struct etch_lab_result *result, const char *twin, FILE *out)
{
    const struct etch_lab_shared *s = result->shared;
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;

    image.path = (char *)twin;
    image.start = s->base;
    image.size = s->end - s->base;
    image.prot = 5;
    for (uint32_t i = 0; i < s->threads && i < ETCH_LAB_THREADS; i++) {
        const struct etch_lab_thread *t = &s->thread[i];

        if (t->dead || !t->site)
            continue;
        fprintf(out, "  T%u  ", i + 1);
        print_place(symbols, &image, t, out);
        fprintf(out, "%s%s", t->wait ? "  " : "", wait_name(t->wait));
        if (t->wait == ETCH_LAB_MUTEX && t->holder < s->threads)
            fprintf(out, " that T%u holds%s", t->holder + 1, s->thread[t->holder].dead ? ", which has ended" : "");
        fprintf(out, "%s\n", result->end != ETCH_LAB_HUNG && i == s->running ? "  ran last" : "");
    }
    if (result->end == ETCH_LAB_WRONG)
        print_block(symbols, &image, s, out);
    etch_symbols_free(symbols);
}

/* ---- The cause ---- */

static void print_moment(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_event *e,
                         FILE *out)
{
    struct etch_lab_thread at = {.site = e->site};

    for (uint32_t i = ETCH_LAB_CALLERS; i-- > 0;)
        if (e->callers[i])
            at.frames[at.depth++] = e->callers[i];
    fprintf(out, "T%u ", e->thread + 1);
    print_place(symbols, image, &at, out);
    if (e->visit > 1)
        fprintf(out, " #%u", e->visit);
    fprintf(out, " (%s)", e->write ? "write" : "read");
}

static const char *claim_kind(enum etch_claim_kind kind)
{
    static const char *const names[] = {"", "order", "atomicity", "atomicity", "lock_order", "wait", "orders"};

    return names[kind];
}

static void print_order(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_order *o,
                        FILE *out)
{
    print_moment(symbols, image, &o->before, out);
    fprintf(out, " before ");
    print_moment(symbols, image, &o->after, out);
    fprintf(out, "%s\n", o->whole ? ", and before the end of that thread" : "");
}

static void print_claim(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_cause *c,
                        FILE *out)
{
    const struct etch_claim *claim = &c->claim;

    fprintf(out, "cause      %s\n", claim_kind(claim->kind));
    for (uint32_t i = 0; i < claim->n; i++) {
        fprintf(out, "  %-9s  ", i ? "and" : etch_claim_is_proven(claim) ? "proven" : "necessary");
        print_order(symbols, image, &c->orders.v[claim->orders[i]], out);
    }
    fprintf(out, "             turned round: %u of %u fail; enforced alone: %u of %u fail\n",
            claim->turned.failed + claim->turned.otherwise, claim->turned.of,
            claim->alone.failed + claim->alone.otherwise, claim->alone.of);
}

void etch_lab_print_cause(const struct etch_lab_cause *c, const char *twin, FILE *out)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;
    size_t switches = c->schedule.segments.n ? c->schedule.segments.n - 1 : 0;

    image.path = (char *)twin;
    image.start = c->base;
    image.size = c->end - c->base;
    image.prot = 5;
    fprintf(out, "shortened  to %zu switch%s\n", switches, switches == 1 ? "" : "es");
    if (c->claim.n)
        print_claim(symbols, &image, c, out);
    else
        fprintf(out, "cause      no order of two accesses alone decides the failure\n");
    fprintf(out, "           %u order%s tried, %u necessary, %" PRIu64 " runs\n", c->n_tried,
            c->n_tried == 1 ? "" : "s", c->orders.n, c->runs);
    etch_symbols_free(symbols);
}
