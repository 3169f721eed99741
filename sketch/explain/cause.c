/* SPDX-License-Identifier: MIT */
/* Causes in words; see cause.h. */
#include "sketch/explain/cause.h"

#include "base/function_name.h"
#include "base/path.h"

#include <stdio.h>

#define MESSAGE_MAX 200 /* characters of an exception's own words in a headline */

static bool is_uncaught(const Etch__Failure *f)
{
    return f->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION;
}

/* "std::runtime_error", "int 42", "const char* "no such key"": the type, and the value where it is shown with it. */
static void name_exception(const Etch__Exception *e, char *text, size_t size)
{
    const char *type = e && e->type[0] ? e->type : "exception";

    if (e && e->is_text && e->said_case == ETCH__EXCEPTION__SAID_WHAT)
        snprintf(text, size, "%.200s \"%.*s\"", type, MESSAGE_MAX, e->what);
    else if (e && e->number[0])
        snprintf(text, size, "%.200s %s", type, e->number);
    else
        snprintf(text, size, "%.200s", type);
}

/* ": no such key"; nothing where it is not known, or stands with the type. */
static void add_message(const Etch__Exception *e, char *text, size_t size)
{
    bool known = e && !e->is_text && e->said_case == ETCH__EXCEPTION__SAID_WHAT;

    text[0] = '\0';
    if (known && e->what[0])
        snprintf(text, size, ": %.*s", MESSAGE_MAX, e->what);
}

bool etch_cause_headline(const Etch__Failure *f, const char *function, char *text, size_t size)
{
    char where[600], name[500], message[300];

    snprintf(where, sizeof(where), "%s%.500s%s", *function ? " in " : "", function, *function ? "()" : "");
    switch (f->cause) {
    case ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION:
        name_exception(f->exception, name, sizeof(name));
        add_message(f->exception, message, sizeof(message));
        snprintf(text, size, "uncaught %s%s%s", name, where, message);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_TERMINATE:
        snprintf(text, size, "std::terminate%s%s", where,
                 f->exception && f->exception->none ? ": no exception is active" : "");
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_JOINABLE_THREAD:
        snprintf(text, size, "std::terminate%s: a std::thread was destroyed that was neither joined nor detached",
                 where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_PURE_VIRTUAL:
        snprintf(text, size, "a pure virtual function was called%s", where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_NO_RETURN_VALUE:
        snprintf(text, size, "SIGILL%s: the function ends without returning a value (the compiler put a trap there)",
                 where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_TRAP:
        snprintf(text, size, "SIGILL%s: a trap instruction, put in by the compiler or by __builtin_trap()", where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY:
        snprintf(text, size, "out of memory%s (SIGKILL)", where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_STACK_OVERFLOW:
        snprintf(text, size, "stack overflow%s (SIGSEGV)", where);
        return true;
    case ETCH__FAILURE_CAUSE__CAUSE_TRAP_CALL:
        snprintf(text, size, "SIGILL%s: __builtin_trap()", where);
        return true;
    default:
        return false;
    }
}

bool etch_cause_step(const Etch__Failure *f, char *text, size_t size)
{
    char name[500], message[300];

    if (is_uncaught(f)) {
        name_exception(f->exception, name, sizeof(name));
        add_message(f->exception, message, sizeof(message));
        snprintf(text, size, "nothing catches %s%s", name, message);
        return true;
    }
    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_TERMINATE || f->cause == ETCH__FAILURE_CAUSE__CAUSE_JOINABLE_THREAD)
        snprintf(text, size, "std::terminate");
    else if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_PURE_VIRTUAL)
        snprintf(text, size, "pure virtual call");
    else if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_NO_RETURN_VALUE)
        snprintf(text, size, "no value is returned here");
    else
        return false;
    return true;
}

/* ---- Notes ---- */

static void write_place(const char *before, const Etch__Place *at, char *text, size_t size)
{
    char brief[128];

    snprintf(text, size, "%s%s:%u%s%s%s", before, etch_path_name(at->file), at->line, at->function[0] ? ", in " : "",
             etch_function_short(at->function, brief, sizeof(brief)), at->function[0] ? "()" : "");
}

static bool note_throw(const Etch__Exception *e, unsigned number, char *text, size_t size)
{
    if (number == 0 && !e->thrown_at && e->n_again_at)
        snprintf(text, size,
                 "The place of the first throw is not known. The place shown is where the exception was thrown again.");
    else if (number == 0 && !e->thrown_at)
        snprintf(text, size, "The place of the throw is known only from the stack at the end.");
    else if (number == 1 && e->thrown_at && e->n_again_at)
        write_place("The exception was thrown again at ", e->again_at[e->n_again_at - 1], text, size);
    else if (number == 2 && e->stopped_at)
        write_place("The exception could not leave a function that is noexcept: ", e->stopped_at, text, size);
    else if (number == 3 && e->on_their_way)
        snprintf(text, size, "The exception was thrown while the stack was being unwound for another exception.");
    else if (number == 4 && e->made_with)
        snprintf(text, size,
                 "The text of the exception is its constructor argument. Its what() may return something else.");
    else
        return false;
    return true;
}

static bool note_handled(const Etch__Exception *e, char *text, size_t size)
{
    char name[500], message[300];

    name_exception(e, name, sizeof(name));
    add_message(e, message, sizeof(message));
    snprintf(text, size, "abort() was called while an exception was being handled: %s%s", name, message);
    return true;
}

bool etch_cause_note(const Etch__Failure *f, unsigned number, char *text, size_t size)
{
    const Etch__Exception *e = f->exception;
    unsigned seen = 0;

    if (!e || e->none)
        return false;
    if (e->handled)
        return number == 0 && note_handled(e, text, size);
    for (unsigned i = 0; i < 5; i++)
        if (note_throw(e, i, text, size) && seen++ == number)
            return true;
    return false;
}
