/* SPDX-License-Identifier: MIT */
/* Core files: a whole one, one cut at every byte, and files that are none. */
#include "binary/core.h"
#include "tests/unit/binary/made_core.h"
#include "tests/unit/test.h"

static struct made_core made;

static struct etch_core *open_core(size_t size)
{
    struct etch_error err;
    struct etch_core *core;

    return etch_core_open_bytes(&core, (const uint8_t *)&made, size, "core", &err) == 0 ? core : NULL;
}

static void read_whole(void **state)
{
    const struct etch_core_contents *c;
    struct etch_core *core;
    uint64_t entry;

    (void)state;
    made_core(&made);
    core = open_core(sizeof(made));
    assert_non_null(core);
    c = etch_core_contents(core);
    assert_int_equal(c->threads.n, 2);
    assert_int_equal(c->threads.v[0].tid, 41);
    assert_int_equal(c->threads.v[0].signal, 11);
    assert_true(c->threads.v[0].signal_known);
    assert_int_equal(c->threads.v[0].signal_address, 0x18);
    assert_int_equal(c->threads.v[0].registers[0], 7);
    assert_int_equal(c->threads.v[0].registers[8], MADE_CODE + 0x1234);
    assert_int_equal(c->threads.v[0].registers[14], 0xf5);
    assert_int_equal(c->threads.v[0].registers[23], 15);
    assert_false(c->threads.v[1].signal_known);
    assert_int_equal(c->threads.v[1].system_call, 202);
    assert_int_equal(c->pid, 41);
    assert_string_equal(c->name, "prog");
    assert_string_equal(c->arguments, "./prog one");
    assert_int_equal(c->missing, 0);
    assert_false(c->notes_cut);
    assert_true(etch_core_auxv(core, AT_ENTRY, &entry));
    assert_int_equal(entry, MADE_CODE + 0x100);
    assert_false(etch_core_auxv(core, AT_BASE, &entry));
    etch_core_free(core);
}

static void find_files(void **state)
{
    const struct etch_core_file *file;
    uint8_t id[ETCH_BUILD_ID_MAX];
    struct etch_core *core;

    (void)state;
    made_core(&made);
    core = open_core(sizeof(made));
    file = etch_core_file_at(core, MADE_CODE + 0x1001);
    assert_non_null(file);
    assert_int_equal(file->offset, 0x1000);
    assert_int_equal(file->prot, 5);
    assert_int_equal(etch_core_build_id(core, file, id), 0);
    file = etch_core_file_at(core, MADE_CODE);
    assert_string_equal(file->path, "/opt/prog");
    assert_int_equal(etch_core_build_id(core, file, id), 20);
    assert_memory_equal(id, "0123456789abcdefghij", 20);
    assert_null(etch_core_file_at(core, MADE_CODE - 1));
    etch_core_free(core);
}

/* Memory that was not dumped is unknown. */
static void read_memory(void **state)
{
    struct etch_core *core;
    char bytes[64];

    (void)state;
    made_core(&made);
    core = open_core(sizeof(made));
    assert_int_equal(etch_core_read(core, MADE_CODE + 1, bytes, 3), 3);
    assert_memory_equal(bytes, "ELF", 3);
    assert_int_equal(etch_core_read(core, MADE_CODE + sizeof(made.code) - 4, bytes, 64), 4);
    assert_int_equal(etch_core_read(core, MADE_CODE + 0x1000, bytes, 8), 0);
    assert_int_equal(etch_core_read(core, MADE_STACK + sizeof(made.stack), bytes, 1), 0);
    assert_int_equal(etch_core_read(core, UINT64_MAX - 2, bytes, 8), 0);
    etch_core_free(core);
}

static void find_arguments(void **state)
{
    struct etch_core *core;
    char *words[4];
    uint64_t top;

    (void)state;
    made_core(&made);
    core = open_core(sizeof(made));
    assert_int_equal(etch_core_arguments(core, words, 4, &top), 2);
    assert_string_equal(words[0], "./prog");
    assert_string_equal(words[1], "one");
    assert_int_equal(top, MADE_ARGC);
    free(words[0]);
    free(words[1]);
    etch_core_free(core);
}

/* A core is told to be cut wherever it ends, and has every thread whose note is whole. */
static void cut_anywhere(void **state)
{
    (void)state;
    made_core(&made);
    for (size_t size = 0; size < sizeof(made); size++) {
        struct etch_core *core = open_core(size);

        if (core) {
            assert_true(etch_core_contents(core)->missing || etch_core_contents(core)->notes_cut);
            assert_true(size >= offsetof(struct made_core, process_note));
        } else {
            assert_true(size < offsetof(struct made_core, process_note));
        }
        etch_core_free(core);
    }
}

static void refuse_others(void **state)
{
    static const char zstd[] = "\x28\xb5\x2f\xfd and more";
    struct etch_core *core;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_core_open_bytes(&core, (const uint8_t *)zstd, sizeof(zstd), "core", &err), -1);
    assert_non_null(strstr(err.advice, "zstd -d"));
    assert_int_equal(etch_core_open(&core, "/", &err), -1);
    made_core(&made);
    made.header.e_type = ET_EXEC;
    assert_null(open_core(sizeof(made)));
    made.header.e_type = ET_CORE;
    made.header.e_machine = EM_AARCH64;
    assert_null(open_core(sizeof(made)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_whole),     cmocka_unit_test(find_files),   cmocka_unit_test(read_memory),
        cmocka_unit_test(find_arguments), cmocka_unit_test(cut_anywhere), cmocka_unit_test(refuse_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
