// SPDX-License-Identifier: MIT
// A request that is too large is refused, but the parser stays where it was; it takes the next request for a body it has no room for.
#include "../corpus.h"

enum { LIMIT = 64, LINES = 5 };
enum state { START, HEADERS, BODY };

struct parser {
    enum state state;
    unsigned length, have;
    char *body;
};
struct request {
    const char *lines[LINES];
};
static unsigned served, refused;

static void parser_reset(struct parser *p)
{
    p->state = START;
    p->length = 0;
    p->have = 0;
    p->body = NULL;                                   //@null
}

static int finish(struct parser *p)
{
    unsigned hash = 0;

    for (unsigned i = 0; i < p->have; i++)
        hash = hash * 33 + (unsigned char)p->body[i];
    free(p->body);
    parser_reset(p);
    served++;
    return 200 + (int)(hash & 1);
}

static int feed(struct parser *p, const char *line)
{
    switch (p->state) {                               //@dispatch
    case START:
        if (strncmp(line, "GET ", 4) != 0 && strncmp(line, "PUT ", 4) != 0)
            return -400;
        p->state = HEADERS;
        return 0;
    case HEADERS:
        if (strncmp(line, "length: ", 8) == 0)
            p->length = (unsigned)atoi(line + 8);     //@length
        if (*line)
            return 0;
        if (p->length == 0)
            return finish(p);
        p->state = BODY;                              //@state
        if (p->length > LIMIT) {                      //@limit
#ifdef FIXED
            parser_reset(p);
#endif
            return -413;                              //@error
        }
        p->body = malloc(p->length);
        return 0;
    case BODY:
        for (; *line && p->have < p->length; line++) {
            p->body[p->have] = *line;                 //@use
            p->have++;
        }
        return p->have == p->length ? finish(p) : 0;
    }
    return -500;
}

static int serve(struct parser *p, const struct request *r)
{
    int status = 0;

    for (int i = 0; i < LINES && r->lines[i]; i++) {
        status = feed(p, r->lines[i]);                //@feed
        if (status != 0)
            break; // what is left of a refused request is skipped
    }
    return status;
}

int main(void)
{
    static const struct request requests[] = {
        {{"GET /", "host: a", ""}},
        {{"PUT /note", "length: 5", "", "hello"}},
        {{"PUT /film", "length: 90000", "", "frames"}},
        {{"FETCH /", ""}},
        {{"GET /news", "accept: text", "host: b", ""}},
        {{"PUT /list", "length: 11", "", "milk, ", "bread"}},
        {{"PUT /none", "length: 0", ""}},
        {{"GET /icon", ""}},
    };
    static const struct request quit = {{"GET /quit", "host: a", ""}};
    struct parser parser;
    long sum = 0;

    parser_reset(&parser);
    for (int i = 0; i < 4; i++) {
        const struct request *r = i < 3 ? &requests[draw(8)] : &quit; //@input
        int status = serve(&parser, r);               //@serve
        if (status < 0)
            refused++;
        sum += status;
    }
    printf("%u served, %u refused, sum %ld\n", served, refused, sum);
    return 0;
}
