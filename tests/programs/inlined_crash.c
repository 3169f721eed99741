// SPDX-License-Identifier: MIT
// Fails within a function that is inlined into a function that is inlined, on the line that is marked.
struct node {
    struct node *next;
    int value;
};
static struct node *volatile head;
static inline __attribute__((always_inline)) int value_of(struct node *n)
{
    return n->value;            //@fail
}
static inline int first(void)
{
    struct node *n = head;      //@in
    return value_of(n);         //@in
}
int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 5)
        head = 0;               //@in
    return first();
}
