/* SPDX-License-Identifier: MIT */
/* From necessary orders to the claim: the chain, the shape, the verdict. */
#include "diagnose/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct etch_lab_event event(uint32_t thread, uint64_t site, bool write, bool sync, uint64_t object)
{
    return (struct etch_lab_event){
        .site = site, .object = object, .thread = thread, .visit = 1, .write = write, .sync = sync};
}

/* Thread 1 reads at 0 and at 4, thread 0 writes in between. */
static struct etch_lab_orders check_and_use(void)
{
    struct etch_lab_orders o = {.n = 2};

    o.v[0] = (struct etch_lab_order){.before = event(0, 20, true, false, 64),
                                     .after = event(1, 30, false, false, 64),
                                     .at_before = 2,
                                     .at_after = 4};
    o.v[1] = (struct etch_lab_order){.before = event(1, 10, false, false, 64),
                                     .after = event(0, 20, true, false, 64),
                                     .at_before = 0,
                                     .at_after = 2};
    o.turned[0] = 2; /* the use first: the check is still before the write */
    return o;
}

static void chain_begins_with_the_order_that_removes_the_other(void **state)
{
    struct etch_lab_orders o = check_and_use();

    (void)state;
    assert_true(etch_orders_lead(&o, 1, 0));
    assert_false(etch_orders_lead(&o, 0, 1));
    assert_int_equal(etch_orders_depth(&o, 1), 1);
    assert_int_equal(etch_orders_depth(&o, 0), 0);
    assert_int_equal(etch_claim_of_source(&o).orders[0], 1);
}

static void list_has_no_set_that_held_in_a_passing_run(void **state)
{
    struct etch_lab_orders o = check_and_use();
    struct etch_claim v[8];
    uint32_t n = etch_claims_list(&o, v, 8);

    (void)state;
    assert_int_equal(n, 1); /* order 1 alone held when order 0 was turned round, and the run passed */
    assert_int_equal(v[0].n, 1);
    assert_int_equal(v[0].orders[0], 0);
    o.passed[o.n_passed++] = 1; /* order 0 alone held, and the run passed */
    assert_int_equal(etch_claims_list(&o, v, 8), 1);
    assert_int_equal(v[0].n, 2);
    etch_orders_refuse(&o, &v[0]);
    assert_int_equal(etch_claims_list(&o, v, 8), 0);
}

/* The last run passed with both necessary orders: a third order, not known to be necessary, did not hold in it. */
static void list_adds_what_passing_runs_lack(void **state)
{
    struct etch_lab_orders o = check_and_use();
    struct etch_claim v[8];

    (void)state;
    o.v[2] = o.v[3] = o.v[1];
    o.all = 4;
    o.passed[o.n_passed++] = 3 | 8;
    assert_int_equal(etch_claims_list(&o, v, 8), 1);
    assert_int_equal(v[0].n, 2);
    assert_int_equal(v[0].orders[0], 0);
    assert_int_equal(v[0].orders[1], 2);
    o.passed[o.n_passed++] = 1 | 4;
    assert_int_equal(etch_claims_list(&o, v, 8), 1);
    assert_int_equal(v[0].n, 2);
    assert_int_equal(v[0].orders[0], 1);
    assert_int_equal(v[0].orders[1], 2);
}

/* Both orders of the pair, once a run has passed with each of them alone. */
static struct etch_claim pair_of(struct etch_lab_orders *o)
{
    struct etch_claim c = {0};

    o->passed[o->n_passed++] = 1;
    o->passed[o->n_passed++] = 2;
    assert_int_equal(etch_claims_list(o, &c, 1), 1);
    assert_int_equal(c.n, 2);
    return c;
}

static void pair_is_an_atomicity_violation(void **state)
{
    struct etch_lab_orders o = check_and_use();
    struct etch_claim c = pair_of(&o);

    (void)state;
    assert_int_equal(c.kind, ETCH_CLAIM_ATOMICITY);
    assert_int_equal(c.n_moments, 3);
    assert_int_equal(c.moments[0].site, 10);
    assert_int_equal(c.moments[1].site, 20);
    assert_int_equal(c.moments[2].site, 30);
}

/* Both threads read, then both write. */
static void lost_update_names_the_write_between(void **state)
{
    struct etch_lab_orders o = {.n = 2};
    struct etch_claim c;

    (void)state;
    o.v[0] = (struct etch_lab_order){.before = event(0, 10, false, false, 64),
                                     .after = event(1, 20, true, false, 64),
                                     .at_before = 0,
                                     .at_after = 3};
    o.v[1] = (struct etch_lab_order){.before = event(1, 10, false, false, 64),
                                     .after = event(0, 20, true, false, 64),
                                     .at_before = 1,
                                     .at_after = 2};
    c = pair_of(&o);
    assert_int_equal(c.kind, ETCH_CLAIM_ATOMICITY);
    assert_int_equal(c.moments[0].thread, 1);
    assert_int_equal(c.moments[1].thread, 0);
    assert_int_equal(c.moments[1].site, 20);
    assert_int_equal(c.moments[2].thread, 1);
}

static void two_variables_are_four_moments(void **state)
{
    struct etch_lab_orders o = check_and_use();
    struct etch_claim c;

    (void)state;
    o.v[0].before = event(0, 25, true, false, 128);
    o.v[0].after.object = 128;
    o.v[0].at_before = 3;
    c = pair_of(&o);
    assert_int_equal(c.kind, ETCH_CLAIM_TORN);
    assert_int_equal(c.n_moments, 4);
    assert_int_equal(c.moments[2].site, 25);

    /* One access of the other thread to both variables is between two accesses of this thread. */
    o = check_and_use();
    o.v[0].before.object = o.v[0].after.object = 128;
    c = pair_of(&o);
    assert_int_equal(c.kind, ETCH_CLAIM_ATOMICITY);
    assert_int_equal(c.n_moments, 3);
    assert_int_equal(c.moments[1].site, 20);
}

/* T1 takes A, T2 takes B, T1 wants B, T2 wants A. */
static void ring_of_locks(void **state)
{
    struct etch_lab_orders o = {.n = 2, .hangs = true};
    struct etch_claim c;

    (void)state;
    o.v[0] = (struct etch_lab_order){
        .before = event(1, 10, true, true, 64), .after = event(2, 40, true, true, 64), .at_before = 0, .at_after = 3};
    o.v[1] = (struct etch_lab_order){
        .before = event(2, 30, true, true, 128), .after = event(1, 20, true, true, 128), .at_before = 1, .at_after = 2};
    c = pair_of(&o);
    assert_int_equal(c.kind, ETCH_CLAIM_RING);
    assert_int_equal(c.n_moments, 4);
    assert_int_equal(c.moments[0].site, 10);
    assert_int_equal(c.moments[1].site, 20);
    assert_int_equal(c.moments[2].site, 30);
    assert_int_equal(c.moments[3].site, 40);
}

static void wake_up_before_the_wait(void **state)
{
    struct etch_lab_orders o = {.n = 1, .hangs = true, .n_waits = 1, .waits = {{.site = 20, .thread = 1}}};
    struct etch_claim v[8];

    (void)state;
    o.v[0] = (struct etch_lab_order){
        .before = event(0, 10, true, true, 64), .after = event(1, 20, true, true, 64), .at_before = 0, .at_after = 1};
    assert_int_equal(etch_claims_list(&o, v, 8), 1);
    assert_int_equal(v[0].kind, ETCH_CLAIM_WAIT);
    o.waits[0].thread = 0;
    etch_claims_list(&o, v, 8);
    assert_int_equal(v[0].kind, ETCH_CLAIM_ORDER);
}

static void proven_needs_both_directions(void **state)
{
    const struct etch_claim good = {
        .kind = ETCH_CLAIM_ORDER, .n = 1, .turned = {.of = ETCH_CLAIM_TRIES}, .alone = {.failed = 20, .of = 20}};
    struct etch_claim c = good;

    (void)state;
    assert_true(etch_claim_is_proven(&c));
    c.unsure = true;
    assert_false(etch_claim_is_proven(&c));
    c.unsure = false;
    c.turned.failed = 1;
    assert_false(etch_claim_is_proven(&c));
    c = good;
    c.turned.otherwise = 1;
    assert_false(etch_claim_is_proven(&c));
    c = good;
    c.alone.failed = 19;
    assert_false(etch_claim_is_proven(&c));
    c.alone.otherwise = 1;
    assert_true(etch_claim_is_proven(&c));
    c.alone.failed = 9;
    c.alone.otherwise = 11;
    assert_false(etch_claim_is_proven(&c));
    c = good;
    c.alone.of = c.alone.failed = ETCH_CLAIM_TRIES - 1;
    assert_false(etch_claim_is_proven(&c));
    c = good;
    c.turned.of = ETCH_CLAIM_TRIES - 1;
    assert_false(etch_claim_is_proven(&c));
    c = good;
    c.kind = ETCH_CLAIM_SET; /* the order that is shown is not all that was enforced */
    assert_false(etch_claim_is_proven(&c));
    assert_true(etch_claim_bound(&good) > 0.69 && etch_claim_bound(&good) < 0.72);
    c = (struct etch_claim){0};
    assert_true(etch_claim_bound(&c) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_begins_with_the_order_that_removes_the_other),
        cmocka_unit_test(list_has_no_set_that_held_in_a_passing_run),
        cmocka_unit_test(list_adds_what_passing_runs_lack),
        cmocka_unit_test(pair_is_an_atomicity_violation),
        cmocka_unit_test(lost_update_names_the_write_between),
        cmocka_unit_test(two_variables_are_four_moments),
        cmocka_unit_test(ring_of_locks),
        cmocka_unit_test(wake_up_before_the_wait),
        cmocka_unit_test(proven_needs_both_directions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
