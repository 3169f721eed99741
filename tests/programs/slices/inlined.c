// SPDX-License-Identifier: MIT
// A function that the optimiser inlines: its statements are still its own.
struct ring {
    unsigned head, tail;
};
static inline __attribute__((always_inline)) unsigned used(const struct ring *r)
{
    return r->head - r->tail;                    //@in reads r->head, reads r->tail
}
static inline unsigned room(const struct ring *r)
{
    unsigned u = used(r);                        //@in
    return 8 - u;                                //@in
}
struct ring ring;
int main(int argc, char **argv)
{
    ring.head = (unsigned)argc * 8;              //@in writes ring.head
    (void)argv;
    return (int)(64 / room(&ring));              //@fail
}
