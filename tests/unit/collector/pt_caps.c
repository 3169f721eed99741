/* SPDX-License-Identifier: MIT */
/* PMUs that we do not have, as trees of files: what is asked of each, and files that lie. */
#include "collector/pt_caps.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#define PT "/sys/bus/event_source/devices/intel_pt/"

static void make_skylake(struct tree *tree)
{
    static const char *const files[][2] = {
        {"type", "8\n"},
        {"nr_addr_filters", "2\n"},
        {"tsc_art_ratio", "250:2\n"},
        {"max_nonturbo_ratio", "36\n"},
        {"caps/mtc", "1\n"},
        {"caps/psb_cyc", "1\n"},
        {"caps/ip_filtering", "1\n"},
        {"caps/num_address_ranges", "2\n"},
        {"caps/mtc_periods", "249\n"}, /* 0, 3, 6, 9 */
        {"caps/psb_periods", "3f\n"},
        {"caps/cycle_thresholds", "1fff\n"},
        {"format/pt", "config:0\n"},
        {"format/cyc", "config:1\n"},
        {"format/mtc", "config:9\n"},
        {"format/tsc", "config:10\n"},
        {"format/noretcomp", "config:11\n"},
        {"format/branch", "config:13\n"},
        {"format/mtc_period", "config:14-17\n"},
        {"format/cyc_thresh", "config:19-22\n"},
        {"format/psb_period", "config:24-27\n"},
    };

    tree_make(tree);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char name[128];

        snprintf(name, sizeof(name), PT "%s", files[i][0]);
        tree_file(tree, name, files[i][1]);
    }
}

static void read_and_remove(struct etch_pt_caps *caps, const struct tree *tree)
{
    etch_pt_caps_read(caps, tree->root);
    tree_remove(tree);
}

#define CONFIG_BASE 0x2401u /* pt, tsc, branch */

static void choose_for_skylake(void **state)
{
    struct etch_pt_setting s;
    struct etch_pt_caps caps;
    struct etch_error err;
    struct tree tree;

    (void)state;
    make_skylake(&tree);
    read_and_remove(&caps, &tree);
    assert_true(caps.present && caps.type == 8 && caps.filters == 2);
    assert_true(caps.art_numerator == 250 && caps.art_denominator == 2 && caps.max_nonturbo_ratio == 36);
    assert_int_equal(etch_pt_setting_choose(&s, &caps, NULL, 4 << 20, &err), 0);
    assert_true(s.mtc && s.mtc_period == 3 && s.psb_period == 3 && !s.cyc && !s.noretcomp);
    assert_true(s.config == (CONFIG_BASE | 1u << 9 | 3u << 14 | 3u << 24));
    /* A small ring has its synchronisation points closer together. */
    assert_int_equal(etch_pt_setting_choose(&s, &caps, NULL, 128 << 10, &err), 0);
    assert_int_equal(s.psb_period, 0);
}

static void choose_as_told(void **state)
{
    struct etch_pt_setting s;
    struct etch_pt_caps caps;
    struct etch_error err;
    struct tree tree;

    (void)state;
    make_skylake(&tree);
    read_and_remove(&caps, &tree);
    assert_int_equal(
        etch_pt_setting_choose(&s, &caps, "cyc,noretcomp=1,mtc_period=9,psb_period=5,cyc_thresh=2", 4 << 20, &err), 0);
    assert_true(s.config == (CONFIG_BASE | 1u << 1 | 1u << 9 | 1u << 11 | 9u << 14 | 2u << 19 | 5u << 24));
    assert_int_equal(etch_pt_setting_choose(&s, &caps, "mtc=0", 4 << 20, &err), 0);
    assert_true(s.config == (CONFIG_BASE | 3u << 24));
}

static void choose_refuses(void **state)
{
    static const char *const wrong[] = {"cyc=2",        "mtc_period=4", "mtc_period", "psb_period=6", "psb_period=99",
                                        "mtc_period=x", "speed",        "cyc=",       "=1",           "noretcomp=1x"};
    struct etch_pt_setting s;
    struct etch_pt_caps caps;
    struct etch_error err;
    struct tree tree;

    (void)state;
    make_skylake(&tree);
    read_and_remove(&caps, &tree);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(etch_pt_setting_choose(&s, &caps, wrong[i], 4 << 20, &err), -1);
        assert_true(err.advice[0]);
    }
}

/* Broadwell, the first with PT: no MTC, no cycle counts, no filters. The format has places for them all the same. */
static void choose_for_broadwell(void **state)
{
    struct etch_pt_setting s;
    struct etch_pt_caps caps;
    struct etch_error err;
    struct tree tree;

    (void)state;
    make_skylake(&tree);
    tree_file(&tree, PT "caps/mtc", "0\n");
    tree_file(&tree, PT "caps/psb_cyc", "0\n");
    tree_file(&tree, PT "nr_addr_filters", "0\n");
    read_and_remove(&caps, &tree);
    assert_int_equal(caps.filters, 0);
    assert_int_equal(etch_pt_setting_choose(&s, &caps, NULL, 4 << 20, &err), 0);
    assert_true(s.config == CONFIG_BASE && !s.mtc);
    assert_int_equal(etch_pt_setting_choose(&s, &caps, "cyc", 4 << 20, &err), -1);
    assert_non_null(strstr(err.what, "has no 'cyc'"));
}

static void read_files_that_lie(void **state)
{
    static const char *const bad[] = {"config:64\n", "config:9-3\n", "config1:9\n", "config:\n", "config:9-\n",
                                      "\n",          "config:-1\n",  "config:9 \n", "9\n",       "config:9-99\n"};
    struct etch_pt_caps caps;
    struct tree tree;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        make_skylake(&tree);
        tree_file(&tree, PT "format/mtc", bad[i]);
        tree_file(&tree, PT "tsc_art_ratio", "250:0\n");
        tree_file(&tree, PT "nr_addr_filters", "4000000000\n");
        tree_file(&tree, PT "max_nonturbo_ratio", "-5\n");
        read_and_remove(&caps, &tree);
        assert_true(caps.present && caps.mtc.mask == 0);
        assert_true(caps.art_numerator == 0 && caps.filters == 0 && caps.max_nonturbo_ratio == 0);
    }
    make_skylake(&tree);
    tree_file(&tree, PT "type", "eight\n");
    read_and_remove(&caps, &tree);
    assert_false(caps.present);
}

static void parse_field(void **state)
{
    struct etch_pt_field f;

    (void)state;
    assert_true(etch_pt_field_parse(&f, "config:14-17") && f.mask == 0x3c000 && f.shift == 14);
    assert_true(etch_pt_field_parse(&f, "config:63") && f.mask == (uint64_t)1 << 63);
    assert_true(etch_pt_field_parse(&f, "config:0-63") && f.mask == UINT64_MAX && f.shift == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choose_for_skylake),   cmocka_unit_test(choose_as_told),      cmocka_unit_test(choose_refuses),
        cmocka_unit_test(choose_for_broadwell), cmocka_unit_test(read_files_that_lie), cmocka_unit_test(parse_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
