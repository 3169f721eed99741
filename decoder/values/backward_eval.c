/* SPDX-License-Identifier: MIT */
/* What one operation shows about its variables: the result from the operands, and an operand from the result and the
 * other operands. Knowledge is by the bit. */
#include "decoder/values/backward_model.h"

/* The operation at hand, with copies of what is known. */
struct eval {
    struct model *m;
    uint32_t op;
    const struct op *o;
    struct var out, a, b, c;
    uint64_t mask;
};

static void forward(const struct eval *e, uint64_t value, uint64_t known)
{
    etch_backward_learn(e->m, e->o->out, value, known, ETCH_HOW_EXECUTED, e->op, 0);
}

static void backward(const struct eval *e, unsigned in, uint64_t value, uint64_t known)
{
    etch_backward_learn(e->m, e->o->in[in], value, known, ETCH_HOW_UNDONE, e->op, 0);
}

/* The bits below the lowest unknown one. */
static uint64_t low_bits(uint64_t known)
{
    return known == ~(uint64_t)0 ? known : (known ^ (known + 1)) >> 1;
}

static bool all_known(const struct var *v, uint64_t mask)
{
    return (v->known & mask) == mask;
}

/* ---- Parts of variables ---- */

static void extract(const struct eval *e)
{
    unsigned s = e->o->shift;

    forward(e, e->a.value >> s & e->mask, (e->a.known >> s & e->mask) | ~e->mask);
    backward(e, 0, (e->out.value & e->mask) << s, (e->out.known & e->mask) << s);
}

static void insert(const struct eval *e)
{
    unsigned s = e->o->shift;
    uint64_t inside = e->mask << s;

    forward(e, (e->a.value & ~inside) | (e->b.value << s & inside),
            (e->a.known & ~inside) | (e->b.known << s & inside));
    backward(e, 0, e->out.value & ~inside, e->out.known & ~inside);
    backward(e, 1, (e->out.value & inside) >> s, (e->out.known & inside) >> s);
}

static void extend(const struct eval *e)
{
    uint64_t from = etch_backward_mask(e->o->shift), sign = (from >> 1) + 1, above = e->mask & ~from;
    uint64_t value = e->a.value & from, known = (e->a.known & from) | ~e->mask;

    if (e->a.known & sign) {
        known |= above;
        value |= e->a.value & sign ? above : 0;
    }
    forward(e, value, known);
    backward(e, 0, e->out.value & from, e->out.known & from);
    if (e->out.known & above)
        backward(e, 0, e->out.value & above ? sign : 0, sign);
}

static uint64_t swapped(uint64_t v, unsigned width)
{
    return __builtin_bswap64(v) >> (64 - width);
}

static void swap(const struct eval *e)
{
    unsigned w = e->o->width;

    forward(e, swapped(e->a.value & e->mask, w), swapped(e->a.known & e->mask, w) | ~e->mask);
    backward(e, 0, swapped(e->out.value & e->mask, w), swapped(e->out.known & e->mask, w));
}

/* ---- Arithmetic ---- */

static void add(const struct eval *e)
{
    uint64_t ab = low_bits(e->a.known & e->b.known), oa = low_bits(e->out.known & e->a.known),
             ob = low_bits(e->out.known & e->b.known);

    forward(e, (e->a.value + e->b.value) & e->mask & ab, (ab & e->mask) | ~e->mask);
    backward(e, 0, (e->out.value - e->b.value) & e->mask & ob, ob & e->mask);
    backward(e, 1, (e->out.value - e->a.value) & e->mask & oa, oa & e->mask);
}

static void subtract(const struct eval *e)
{
    uint64_t ab = low_bits(e->a.known & e->b.known), oa = low_bits(e->out.known & e->a.known),
             ob = low_bits(e->out.known & e->b.known);

    if (e->o->in[0] == e->o->in[1])
        ab = e->mask;
    forward(e, (e->a.value - e->b.value) & e->mask & ab, (ab & e->mask) | ~e->mask);
    backward(e, 0, (e->out.value + e->b.value) & e->mask & ob, ob & e->mask);
    backward(e, 1, (e->a.value - e->out.value) & e->mask & oa, oa & e->mask);
}

static void and (const struct eval *e)
{
    uint64_t zeros = (e->a.known & ~e->a.value) | (e->b.known & ~e->b.value);
    uint64_t ones = e->out.known & e->out.value & e->mask;

    forward(e, e->a.value & e->b.value & e->mask, (e->a.known & e->b.known) | zeros | ~e->mask);
    backward(e, 0, ones | (e->out.value & e->b.value & e->mask), ones | (e->out.known & e->b.value & e->mask));
    backward(e, 1, ones | (e->out.value & e->a.value & e->mask), ones | (e->out.known & e->a.value & e->mask));
}

static void or (const struct eval *e)
{
    uint64_t ones = (e->a.value | e->b.value) & e->mask;
    uint64_t zeros = e->out.known & ~e->out.value & e->mask;
    uint64_t az = e->a.known & ~e->a.value & e->mask, bz = e->b.known & ~e->b.value & e->mask;

    forward(e, ones, (e->a.known & e->b.known) | ones | ~e->mask);
    backward(e, 0, e->out.value & bz, zeros | (e->out.known & bz));
    backward(e, 1, e->out.value & az, zeros | (e->out.known & az));
}

static void xor
    (const struct eval *e) {
        uint64_t ab = e->a.known & e->b.known, oa = e->out.known & e->a.known & e->mask,
                 ob = e->out.known & e->b.known & e->mask;

        if (e->o->in[0] == e->o->in[1])
            ab = e->mask;
        forward(e, (e->a.value ^ e->b.value) & ab & e->mask, ab | ~e->mask);
        backward(e, 0, (e->out.value ^ e->b.value) & ob, ob);
        backward(e, 1, (e->out.value ^ e->a.value) & oa, oa);
    }

    /* The inverse of an odd number, modulo 2^64. */
    static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;

    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

static void multiply(const struct eval *e)
{
    uint64_t ab = low_bits(e->a.known & e->b.known), oa = low_bits(e->out.known & e->a.known),
             ob = low_bits(e->out.known & e->b.known);

    forward(e, (e->a.value * e->b.value) & e->mask & ab, (ab & e->mask) | ~e->mask);
    if (ob && (e->b.value & 1))
        backward(e, 0, e->out.value * inverse(e->b.value) & e->mask & ob, ob & e->mask);
    if (oa && (e->a.value & 1))
        backward(e, 1, e->out.value * inverse(e->a.value) & e->mask & oa, oa & e->mask);
}

static int64_t as_signed(uint64_t v, unsigned width)
{
    return (int64_t)(v << (64 - width)) >> (64 - width);
}

static void multiply_high(const struct eval *e)
{
    unsigned w = e->o->width;
    uint64_t high;

    if (!all_known(&e->a, e->mask) || !all_known(&e->b, e->mask))
        return;
    if (e->o->kind == OP_HIGH_SIGNED)
        high = (uint64_t)((__int128)as_signed(e->a.value, w) * as_signed(e->b.value, w) >> w);
    else
        high = (uint64_t)((unsigned __int128)(e->a.value & e->mask) * (e->b.value & e->mask) >> w);
    forward(e, high & e->mask, ~(uint64_t)0);
}

static void divide_signed(const struct eval *e)
{
    unsigned w = e->o->width;
    /* The upper half shifted as unsigned: a negative number may not be shifted left. */
    __int128 n = (__int128)((unsigned __int128)(__int128)as_signed(e->a.value, w) << w | (e->b.value & e->mask));
    __int128 d = as_signed(e->c.value, w), least = (__int128)((unsigned __int128)1 << 127);

    if (d == 0 || (d == -1 && n == least))
        return; /* it would have faulted */
    forward(e, (uint64_t)(e->o->kind == OP_QUOTIENT_SIGNED ? n / d : n % d) & e->mask, ~(uint64_t)0);
}

static void divide(const struct eval *e)
{
    unsigned __int128 n = (unsigned __int128)(e->a.value & e->mask) << e->o->width | (e->b.value & e->mask);
    uint64_t d = e->c.value & e->mask;

    if (!all_known(&e->a, e->mask) || !all_known(&e->b, e->mask) || !all_known(&e->c, e->mask))
        return;
    if (e->o->kind == OP_QUOTIENT_SIGNED || e->o->kind == OP_REMAINDER_SIGNED)
        divide_signed(e);
    else if (d)
        forward(e, (uint64_t)(e->o->kind == OP_QUOTIENT_UNSIGNED ? n / d : n % d) & e->mask, ~(uint64_t)0);
}

/* ---- Shifts ---- */

static void shift_right(const struct eval *e, unsigned n)
{
    uint64_t known = (e->a.known & e->mask) >> n, value = (e->a.value & e->mask) >> n, top = e->mask & ~(e->mask >> n);
    uint64_t sign = (e->mask >> 1) + 1;

    if (e->o->kind == OP_SHIFT_RIGHT)
        known |= top;
    else if (e->a.known & sign) {
        known |= top;
        value |= e->a.value & sign ? top : 0;
    }
    forward(e, value, known | ~e->mask);
    backward(e, 0, (e->out.value & e->mask & ~top) << n, (e->out.known & e->mask & ~top) << n);
}

static uint64_t rotated(uint64_t v, unsigned n, unsigned width)
{
    v &= etch_backward_mask(width);
    n %= width;
    return n ? (v << n | v >> (width - n)) & etch_backward_mask(width) : v;
}

static void shift(const struct eval *e)
{
    unsigned w = e->o->width, bits = w == 64 ? 0x3f : 0x1f, n = (unsigned)e->b.value & bits;

    if (!all_known(&e->b, bits)) {
        forward(e, 0, ~e->mask);
        return;
    }
    if (e->o->kind == OP_ROTATE_LEFT) {
        forward(e, rotated(e->a.value, n, w), rotated(e->a.known, n, w) | ~e->mask);
        backward(e, 0, rotated(e->out.value, w - n % w, w), rotated(e->out.known & e->mask, w - n % w, w));
    } else if (n >= w) {
        if (e->o->kind != OP_SHIFT_SIGNED)
            forward(e, 0, ~(uint64_t)0);
    } else if (e->o->kind == OP_SHIFT_LEFT) {
        forward(e, e->a.value << n & e->mask, (e->a.known << n & e->mask) | etch_backward_mask(n) | ~e->mask);
        backward(e, 0, (e->out.value & e->mask) >> n, (e->out.known & e->mask) >> n);
    } else
        shift_right(e, n);
}

/* ---- Flags ---- */

static void flag(uint64_t *value, uint64_t *known, uint64_t bit, bool set)
{
    *known |= bit;
    *value |= set ? bit : 0;
}

static void flags_of_result(const struct eval *e, uint64_t *value, uint64_t *known)
{
    uint64_t sign = (e->mask >> 1) + 1, r = e->c.value & e->mask;

    if (all_known(&e->c, e->mask) || r)
        flag(value, known, FLAG_ZERO, !r);
    if (e->c.known & sign)
        flag(value, known, FLAG_SIGN, r & sign);
    if (all_known(&e->c, 0xff))
        flag(value, known, FLAG_PARITY, !(__builtin_popcountll(r & 0xff) & 1));
}

static void flags(const struct eval *e)
{
    uint64_t value = 0, known = ~FLAG_ALL, a = e->a.value & e->mask, b = e->b.value & e->mask, r,
             sign = (e->mask >> 1) + 1;
    bool both = all_known(&e->a, e->mask) && all_known(&e->b, e->mask);

    flags_of_result(e, &value, &known);
    if (e->o->kind == OP_FLAGS_LOGIC)
        known |= FLAG_CARRY | FLAG_OVERFLOW;
    else if (e->o->kind == OP_FLAGS_ADD && both) {
        r = (a + b) & e->mask;
        flag(&value, &known, FLAG_CARRY, r < a);
        flag(&value, &known, FLAG_OVERFLOW, (a ^ r) & (b ^ r) & sign);
    } else if (e->o->kind == OP_FLAGS_SUB && both) {
        r = (a - b) & e->mask;
        flag(&value, &known, FLAG_CARRY, a < b);
        flag(&value, &known, FLAG_OVERFLOW, (a ^ b) & (a ^ r) & sign);
    }
    forward(e, value, known);
    if (e->out.value & FLAG_ZERO)
        backward(e, 2, 0, e->mask);
    else if (e->out.known & FLAG_SIGN)
        backward(e, 2, e->out.value & FLAG_SIGN ? sign : 0, sign);
}

/* The flags that a condition tests, without its lowest bit, which turns it around. 0: signed comparisons. */
static uint64_t tested_flags(unsigned condition)
{
    static const uint64_t tested[8] = {FLAG_OVERFLOW, FLAG_CARRY,  FLAG_ZERO, FLAG_CARRY | FLAG_ZERO,
                                       FLAG_SIGN,     FLAG_PARITY, 0,         0};

    return tested[condition >> 1];
}

/* Whether the condition holds, by one set of flags: 1, 0, -1 for unknown. */
static int condition_holds(unsigned condition, const struct var *f)
{
    uint64_t tested = tested_flags(condition);
    bool less, less_known = (f->known & FLAG_SIGN) && (f->known & FLAG_OVERFLOW), holds;

    if (tested) {
        if (!(f->value & tested) && (f->known & tested) != tested)
            return -1;
        holds = f->value & tested;
    } else {
        less = !(f->value & FLAG_SIGN) != !(f->value & FLAG_OVERFLOW);
        if (condition >> 1 == 7 && (f->value & FLAG_ZERO))
            holds = true;
        else if (!less_known || (condition >> 1 == 7 && !less && !(f->known & FLAG_ZERO)))
            return -1;
        else
            holds = less;
    }
    return holds != (condition & 1);
}

static void condition(const struct eval *e)
{
    unsigned c = e->o->shift;
    int holds = condition_holds(c, &e->a);
    uint64_t tested = tested_flags(c);
    bool base; /* of the condition whose lowest bit is 0 */

    forward(e, holds > 0, holds < 0 ? ~(uint64_t)1 : ~(uint64_t)0);
    if (!(e->out.known & 1))
        return;
    base = (e->out.value & 1) != (c & 1);
    if (c >> 1 == 7 && !base)
        backward(e, 0, 0, FLAG_ZERO); /* greater is not equal */
    else if (tested && !base)
        backward(e, 0, 0, tested);
    else if (tested && !(tested & (tested - 1)))
        backward(e, 0, tested, tested);
}

static void select_one(const struct eval *e)
{
    uint64_t same;

    if (e->a.known & 1) {
        unsigned in = e->a.value & 1 ? 1 : 2;
        const struct var *v = in == 1 ? &e->b : &e->c;

        forward(e, v->value & e->mask, (v->known & e->mask) | ~e->mask);
        backward(e, in, e->out.value & e->mask, e->out.known & e->mask);
        return;
    }
    same = e->b.known & e->c.known & ~(e->b.value ^ e->c.value) & e->mask;
    forward(e, e->b.value & same, same | ~e->mask);
}

void etch_backward_evaluate(struct model *m, uint32_t op)
{
    static void (*const functions[])(const struct eval *) = {
        [OP_EXTRACT] = extract,
        [OP_INSERT] = insert,
        [OP_EXTEND] = extend,
        [OP_ADD] = add,
        [OP_SUB] = subtract,
        [OP_AND] = and,
        [OP_OR] = or
        ,
        [OP_XOR] = xor,
        [OP_MULTIPLY] = multiply,
        [OP_HIGH_UNSIGNED] = multiply_high,
        [OP_HIGH_SIGNED] = multiply_high,
        [OP_QUOTIENT_UNSIGNED] = divide,
        [OP_REMAINDER_UNSIGNED] = divide,
        [OP_QUOTIENT_SIGNED] = divide,
        [OP_REMAINDER_SIGNED] = divide,
        [OP_SHIFT_LEFT] = shift,
        [OP_SHIFT_RIGHT] = shift,
        [OP_SHIFT_SIGNED] = shift,
        [OP_ROTATE_LEFT] = shift,
        [OP_SWAP] = swap,
        [OP_FLAGS_ADD] = flags,
        [OP_FLAGS_SUB] = flags,
        [OP_FLAGS_LOGIC] = flags,
        [OP_FLAGS_RESULT] = flags,
        [OP_CONDITION] = condition,
        [OP_SELECT] = select_one,
    };
    const struct op *o = &m->ops.v[op];
    struct eval e = {.m = m, .op = op, .o = o, .out = m->vars.v[o->out], .mask = etch_backward_mask(o->width)};

    e.a = o->in[0] == NO_VAR ? (struct var){0} : m->vars.v[o->in[0]];
    e.b = o->in[1] == NO_VAR ? (struct var){0} : m->vars.v[o->in[1]];
    e.c = o->in[2] == NO_VAR ? (struct var){0} : m->vars.v[o->in[2]];
    functions[o->kind](&e);
}
