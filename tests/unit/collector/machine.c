/* SPDX-License-Identifier: MIT */
/* The doctor's findings on trees of machines that we do not have; what it tries on the running kernel is checked
 * against itself only, because every machine differs. */
#include "collector/machine.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#include <unistd.h>

#define PT "/sys/bus/event_source/devices/intel_pt"

static void probe_pt_device_that_cannot_be_opened(void **state)
{
    struct etch_machine m;
    struct tree tree;

    (void)state;
    tree_make(&tree);
    tree_file(&tree, PT "/type", "999999\n"); /* no PMU of the running kernel */
    tree_file(&tree, PT "/nr_addr_filters", "2\n");
    tree_file(&tree, "/proc/sys/kernel/perf_event_paranoid", "2\n");
    etch_machine_probe(&m, tree.root);
    tree_remove(&tree);
    assert_true(m.pt_present);
    assert_false(m.pt_usable);
    assert_int_equal(m.pt_filters, 2);
    assert_int_equal(etch_machine_check(&m, "intel_pt")->state, ETCH_CHECK_MISSING);
    assert_non_null(strstr(etch_machine_check(&m, "intel_pt")->found, "not usable"));
    assert_true(etch_machine_check(&m, "intel_pt")->advice[0]);
    assert_string_not_equal(m.source, "pt");
}

/* A software event, which every kernel has, opens; but it cannot have what a trace needs. That one can is shown in the
 * rig. */
static void probe_pt_device_without_rings(void **state)
{
    struct etch_machine m;
    struct tree tree;

    (void)state;
    tree_make(&tree);
    tree_file(&tree, PT "/type", "1\n");
    tree_file(&tree, PT "/caps/ip_filtering", "1\n");
    tree_file(&tree, PT "/caps/num_address_ranges", "4\n");
    etch_machine_probe(&m, tree.root);
    tree_remove(&tree);
    assert_true(m.pt_present);
    assert_false(m.pt_usable);
    assert_int_equal(m.pt_filters, 4);
    assert_true(etch_machine_check(&m, "intel_pt")->advice[0]);
    assert_string_not_equal(m.source, "pt");
}

static void probe_empty_tree(void **state)
{
    struct etch_machine m;

    (void)state;
    etch_machine_probe(&m, "/nonexistent");
    assert_false(m.pt_present);
    assert_int_equal(etch_machine_check(&m, "intel_pt")->state, ETCH_CHECK_MISSING);
    assert_int_equal(etch_machine_check(&m, "permissions")->state, ETCH_CHECK_MISSING);
    assert_int_equal(etch_machine_check(&m, "tsc")->state, ETCH_CHECK_MISSING);
    assert_null(etch_machine_check(&m, "no such check"));
}

static void probe_says_what_to_do(void **state)
{
    struct etch_machine m;

    (void)state;
    etch_machine_probe(&m, "");
    assert_true(m.n_checks >= 9);
    for (size_t i = 0; i < m.n_checks; i++) {
        assert_true(m.checks[i].found[0]);
        if (m.checks[i].state == ETCH_CHECK_MISSING)
            assert_true(m.checks[i].advice[0]);
    }
    assert_true(m.source_reason[0]);
    assert_true(m.watch_slots > 0 || !m.watch_delivered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_pt_device_that_cannot_be_opened),
        cmocka_unit_test(probe_pt_device_without_rings),
        cmocka_unit_test(probe_empty_tree),
        cmocka_unit_test(probe_says_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
