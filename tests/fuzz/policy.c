/* SPDX-License-Identifier: MIT */
/* Policies of any bytes, and any command line under them. Up to the first byte 0 it is the policy, behind it the words.
 */
#include "collector/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pass_words(const struct etch_policy *policy, const char *text, size_t size)
{
    struct etch_policy_words words = {""};
    uint64_t hidden = 0;

    for (size_t at = 0; at < size;) {
        char *word = strndup(text + at, size - at), *got;

        got = word
                  ? etch_policy_text(policy, at % 2 ? ETCH_POLICY_ARGUMENT : ETCH_POLICY_MESSAGE, word, &words, &hidden)
                  : NULL;
        if (got && strlen(got) > 4 * strlen(word) + 8)
            abort();
        free(got);
        free(word ? etch_policy_path(policy, word, &hidden) : NULL);
        at += word ? strlen(word) + 1 : size;
        free(word);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t n = strnlen(text, size);
    struct etch_policy *policy;
    struct etch_error err;

    if (etch_policy_parse(&policy, text, n, "fuzz", &err) < 0) {
        if (!err.what[0])
            abort();
        return 0;
    }
    pass_words(policy, text + n, size - n);
    etch_policy_free(policy);
    return 0;
}
