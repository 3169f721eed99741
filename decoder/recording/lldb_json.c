/* SPDX-License-Identifier: MIT */
/* LLDB's description of a trace: JSON whose numbers may be unsigned and of 64 bits. */
#include "decoder/recording/lldb_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t etch_lldb_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    /* Addresses beyond the signed range, and those of newer LLDBs, are strings. */
    if (json_is_string(value))
        return strtoull(json_string_value(value), NULL, 0);
    if (json_is_real(value)) {
        double real = json_real_value(value);

        return real >= 0 && real < 18446744073709551616.0 ? (uint64_t)real : 0;
    }
    return (uint64_t)json_integer_value(value);
}

const char *etch_lldb_string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

/* jansson keeps integers in 64 signed bits and LLDB writes unsigned ones (a timeZero is often near 2^64): those are put
 * in quotes before the parse. Other text is left alone. */
static void quote_large(const char *text, size_t n, FILE *out)
{
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        size_t digits = 0;

        if (!in_string && (i == 0 || !strchr("0123456789.-+eE", text[i - 1])))
            while (i + digits < n && text[i + digits] >= '0' && text[i + digits] <= '9')
                digits++;
        if (digits >= 19 && digits <= 20 && (i + digits == n || !strchr(".eE", text[i + digits]))) {
            fprintf(out, "\"%.*s\"", (int)digits, text + i);
            i += digits - 1;
            continue;
        }
        if (in_string && text[i] == '\\' && i + 1 < n)
            putc(text[i++], out);
        else if (text[i] == '"')
            in_string = !in_string;
        putc(text[i], out);
    }
}

json_t *etch_lldb_parse(const char *path, const char *text, size_t n, struct etch_error *err)
{
    json_error_t why;
    char *quoted = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&quoted, &size);
    json_t *root = NULL;

    if (!out) {
        etch_error_set(err, "cannot read %s: out of memory", path);
        return NULL;
    }
    quote_large(text, n, out);
    if (fclose(out) != 0)
        etch_error_set(err, "cannot read %s: out of memory", path);
    else if (!(root = json_loadb(quoted, size, 0, &why)))
        etch_error_set(err, "%s is not JSON: line %d: %s", path, why.line, why.text);
    free(quoted);
    return root;
}
