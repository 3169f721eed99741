/* SPDX-License-Identifier: MIT */
/* The policy says which data may be written into a bundle. Rules are read from a text and make the decisions. Parsing
 * and deciding are pure functions. docs/policy.md has the grammar. The first rule that fits decides; the built-in rules
 * come last. */
#ifndef ETCH_COLLECTOR_POLICY_H
#define ETCH_COLLECTOR_POLICY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_POLICY_SIZE_MAX (256u << 10) /* bytes of a policy's text */
#define ETCH_POLICY_RULES_MAX 4096u

enum etch_policy_action {
    ETCH_POLICY_ALLOW,
    ETCH_POLICY_MASK, /* the secret part goes, the name stays */
    ETCH_POLICY_DENY, /* all of it goes, the name too */
};

enum etch_policy_kind {
    ETCH_POLICY_ARGUMENT, /* a word of the command line */
    ETCH_POLICY_VALUE,    /* of a variable, or of a register */
    ETCH_POLICY_MESSAGE,  /* an assertion's or an exception's words */
    ETCH_POLICY_PATH,     /* of a file or folder */
    ETCH_POLICY_MEMORY,   /* bytes of generated code; the name is that of the mapping */
    ETCH_POLICY_STACK,    /* of a thread */
    ETCH_POLICY_KINDS,
};

struct etch_policy;

/* Parses a policy. `name` is for messages, which say the line. Returns 0, or -1 with `err` set. */
int etch_policy_parse(struct etch_policy **policy, const char *text, size_t size, const char *name,
                      struct etch_error *err);

/* The built-in rules alone. */
int etch_policy_standard(struct etch_policy **policy, struct etch_error *err);

/* Finds the policy and reads it: `path` if it is not NULL, else what ETCH_POLICY names, else /etc/etch/policy, else
 * ~/.config/etch/policy, else the built-in rules. A file that exists and cannot be used is an error. */
int etch_policy_find(struct etch_policy **policy, const char *path, struct etch_error *err);

/* Reads one file. With `of_root` it must be root's, and writable by nobody else. Returns 1 where there is no file. */
int etch_policy_read(struct etch_policy **policy, const char *path, bool of_root, struct etch_error *err);

void etch_policy_free(struct etch_policy *policy);

/* As it was given to etch_policy_parse(). */
const char *etch_policy_name(const struct etch_policy *policy);

/* Puts one more rule in front of all. */
int etch_policy_add(struct etch_policy *policy, const char *line, struct etch_error *err);

/* Returns the action of the first rule for this kind whose selectors all fit. NULL fits no selector. `type`: "text",
 * "pointer" or "number". */
enum etch_policy_action etch_policy_decide(const struct etch_policy *policy, enum etch_policy_kind kind,
                                           const char *name, const char *type, const char *text);

/* Returns true if the policy has a rule for this kind that is not built in. */
bool etch_policy_speaks_of(const struct etch_policy *policy, enum etch_policy_kind kind);

/* The name that the end of one word gives to the next: "--password" to "hunter2". */
struct etch_policy_words {
    char name[128];
};

/* Returns a copy of the text with the secrets masked, for free(); NULL: no memory. `words` goes from one argument to
 * the next and starts as zeroes; NULL for a text that stands alone. Adds the number of masked parts to `hidden`. */
char *etch_policy_text(const struct etch_policy *policy, enum etch_policy_kind kind, const char *text,
                       struct etch_policy_words *words, uint64_t *hidden);

/* A copy of the path, for free(): the user's name in a home folder is masked. Only the last part of a denied path
 * stays. */
char *etch_policy_path(const struct etch_policy *policy, const char *path, uint64_t *hidden);

/* "text" where a word of memory holds at least five printable characters and nothing behind them, else "pointer" or
 * "number". */
const char *etch_policy_type(uint64_t word);

#define ETCH_POLICY_MASKED "***"
#define ETCH_POLICY_DENIED "(denied)"

/* True if a rule hides the values of variables by their names. */
bool etch_policy_names_values(const struct etch_policy *policy);

#endif
