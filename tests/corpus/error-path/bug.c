// SPDX-License-Identifier: MIT
// A record with a bad mark is discarded before its body was set; what malloc left there is freed.
#include "../corpus.h"
#include <ctype.h>

struct record {
    unsigned type;
    unsigned length;
    char title[8];
    char *body;
};
static unsigned bad_marks, too_long;

static unsigned hash_line(const char *line)
{
    char *scratch = malloc(sizeof(struct record));
    unsigned hash = 7;
    size_t n = 0;

    memset(scratch, '.', sizeof(struct record));
    for (; line[n] && n < sizeof(struct record); n++)
        scratch[n] = (char)toupper((unsigned char)line[n]);
    for (size_t i = 0; i < sizeof(struct record); i++)
        hash = hash * 37 + (unsigned char)scratch[i];
    free(scratch);
    return hash;
}

__attribute__((noinline)) static void record_free(struct record *r)
{
    free(r->body);                                //@free
    free(r);
}

static struct record *record_read(const char *line)
{
    struct record *r = malloc(sizeof(*r));        //@alloc

#ifdef FIXED
    memset(r, 0, sizeof(*r));
#endif
    r->type = (unsigned char)line[0];
    if (r->type != 'R') {                         //@mark
        bad_marks++;
        record_free(r);                           //@discard
        return NULL;
    }
    memcpy(r->title, line + 1, 4);
    r->length = (unsigned)strlen(line + 5);
    r->body = strdup(line + 5);
    if (r->length > 40) {
        too_long++;
        record_free(r);
        return NULL;
    }
    return r;
}

int main(void)
{
    static const char *const lines[] = {
        "Rmaintext of the first one", "Rnote(empty)", "?junknothing that makes sense here", "Rhelpa list of all commands",
        "Rmainsecond text",           "Rnotex",       "Rlonga text that has more letters than a body may have",
        "Rhelpshort",
    };
    unsigned hash = 0, bytes = 0;

    for (int i = 0; i < 3; i++) {
        const char *line = lines[draw(8)];        //@input
        hash ^= hash_line(line);
        struct record *r = record_read(line);     //@read
        if (!r)
            continue;
        bytes += r->length;
        record_free(r);
    }
    printf("hash %08x, %u bytes, %u marks bad, %u too long\n", hash, bytes, bad_marks, too_long);
    return 0;
}
