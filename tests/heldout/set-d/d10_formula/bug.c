/* SPDX-License-Identifier: MIT */ /* Spreadsheet formulas: parser into a node table, then evaluation.
 *
 *   expr := term { (+|-) term }      term := atom { * atom }
 *   atom := number | ( expr ) | NAME ( expr { , expr } )
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum kind { NUM, BIN, CALL };

struct node {
    enum kind kind;
    char op;                /* BIN: + - *   CALL: M(ax) S(um) */
    int argc;
    int args[4];            /* BIN: two of them */
    long value;
};

struct table {
    struct node *nodes;
    int n, cap;
};

static struct table T;
static const char *p;

static int new_node(enum kind kind)
{
    if (T.n == T.cap) {
        int cap = T.cap ? T.cap * 2 : 8;
        struct node *nodes = malloc(cap * sizeof *nodes);

        if (!nodes)
            exit(9);
        memcpy(nodes, T.nodes, T.n * sizeof *nodes);
        free(T.nodes);
        T.nodes = nodes;
        T.cap = cap;
    }
    memset(&T.nodes[T.n], 0, sizeof T.nodes[T.n]);
    T.nodes[T.n].kind = kind;
    return T.n++;
}

static int parse_expr(void);

static int parse_call(void)
{
    int id = new_node(CALL);
    struct node *call = &T.nodes[id];

    call->op = *p++;
    p++;                                /* ( */
    for (;;) {
        int arg = parse_expr();
#ifdef FIXED
        call = &T.nodes[id];
#endif
        call->args[call->argc++] = arg;
        if (*p++ != ',')
            break;
    }
    return id;
}

static int parse_atom(void)
{
    int id;

    if (*p == '(') {
        p++;
        id = parse_expr();
        p++;
        return id;
    }
    if (isupper((unsigned char)*p))
        return parse_call();
    id = new_node(NUM);
    T.nodes[id].value = strtol(p, (char **)&p, 10);
    return id;
}

static int parse_binary(int level)
{
    const char *ops = level == 0 ? "+-" : "*";
    int left = level == 0 ? parse_binary(1) : parse_atom();

    while (*p && strchr(ops, *p)) {
        char op = *p++;
        int right = level == 0 ? parse_binary(1) : parse_atom();
        int id = new_node(BIN);

        T.nodes[id].op = op;
        T.nodes[id].args[0] = left;
        T.nodes[id].args[1] = right;
        left = id;
    }
    return left;
}

static int parse_expr(void) { return parse_binary(0); }

static long eval(int id)
{
    const struct node *n = &T.nodes[id];
    long a, b;

    switch (n->kind) {
    case NUM:
        return n->value;
    case BIN:
        a = eval(n->args[0]);
        b = eval(n->args[1]);
        return n->op == '+' ? a + b : n->op == '-' ? a - b : a * b % 1000003;
    case CALL:
        assert(n->argc > 0);
        a = eval(n->args[0]);
        for (int i = 1; i < n->argc; i++) {
            b = eval(n->args[i]);
            a = n->op == 'S' ? a + b : a > b ? a : b;
        }
        return a;
    }
    return 0;
}

/* ---- a random sheet ------------------------------------------------- */

static char *put_formula(char *w, int depth)
{
    int dice = rand() % 16;

    if (depth == 0 || dice < 5)
        return w + sprintf(w, "%d", rand() % 1000);
    if (dice == 5) {
        int n = 1 + rand() % 2;

        *w++ = "MS"[rand() % 2];
        *w++ = '(';
        while (n--) {
            w = put_formula(w, depth - 1);
            *w++ = n ? ',' : ')';
        }
        return w;
    }
    *w++ = '(';
    w = put_formula(w, depth - 1);
    *w++ = "+-*"[rand() % 3];
    w = put_formula(w, depth - 1);
    *w++ = ')';
    return w;
}

int main(int argc, char **argv)
{
    static char text[65536];
    int roots[12];
    long total = 0;

    srand(argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)time(NULL) * 31 + (unsigned)getpid());
    new_node(NUM);                      /* node 0 stands for "empty" */
    for (int i = 0; i < 12; i++) {
        *put_formula(text, 3) = '\0';
        p = text;
        roots[i] = parse_expr();
    }
    for (int i = 0; i < 12; i++)
        total += eval(roots[i]);
    printf("%d nodes, total %ld\n", T.n, total);
    free(T.nodes);
    return 0;
}
