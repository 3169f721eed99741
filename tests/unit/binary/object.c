/* SPDX-License-Identifier: MIT */
/* ELF files as a recorder sees them, on this very program and on things that are none. */
#include "binary/object.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

extern int a_watched_global[3];
int a_watched_global[3];
extern _Thread_local volatile int a_thread_local_one;
_Thread_local volatile int a_thread_local_one;

static void read_program(void **state)
{
    struct etch_error err;
    struct etch_elf elf;

    (void)state;
    assert_int_equal(etch_elf_read(&elf, SELF, &err), 0);
    assert_true(elf.program);
    assert_true(elf.file_vaddr < (uint64_t)(uintptr_t)a_watched_global);
}

/* The two ways to the build-id are one. */
static void read_build_id(void **state)
{
    uint8_t id[ETCH_BUILD_ID_MAX];
    struct etch_object *object;
    struct etch_error err;
    struct etch_elf elf;
    size_t n;

    (void)state;
    assert_int_equal(etch_elf_read(&elf, SELF, &err), 0);
    assert_int_equal(etch_object_open(&object, SELF, &err), 0);
    n = etch_object_build_id(object, id);
    etch_object_free(object);
    assert_int_equal(n, elf.build_id_size);
    assert_memory_equal(id, elf.build_id, n);
}

static void read_no_elf(void **state)
{
    struct etch_error err;
    struct etch_elf elf;

    (void)state;
    assert_int_equal(etch_elf_read(&elf, "/dev/null", &err), -1); /* no file: never opened */
    assert_non_null(strstr(err.what, "cannot open /dev/null"));
    assert_int_equal(etch_elf_read(&elf, "/etc/passwd", &err), -1);
    assert_non_null(strstr(err.what, "not an ELF file"));
    assert_int_equal(etch_elf_read(&elf, "/nonexistent", &err), -1);
    assert_non_null(strstr(err.what, "cannot open"));
}

/* Every length up to the headers' end, and each byte of the header turned around: an answer or an error, no crash. */
static void read_damaged(void **state)
{
    char path[] = P_tmpdir "/etch-elf-XXXXXX";
    int fd = mkstemp(path), from = open(SELF, O_RDONLY);
    uint8_t bytes[1024];
    struct etch_error err;
    struct etch_elf elf;
    uint64_t address, size;

    (void)state;
    assert_true(fd >= 0 && read(from, bytes, sizeof(bytes)) == sizeof(bytes));
    for (size_t n = 0; n <= sizeof(bytes); n += 7) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, bytes, n, 0), (ssize_t)n);
        etch_elf_read(&elf, path, &err);
        etch_elf_variable(path, "main", &address, &size, &err);
    }
    for (size_t i = 0; i < 64; i++) {
        bytes[i] ^= 0xff;
        assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
        etch_elf_read(&elf, path, &err);
        etch_elf_variable(path, "main", &address, &size, &err);
        bytes[i] ^= 0xff;
    }
    close(from);
    close(fd);
    unlink(path);
}

static void find_variable(void **state)
{
    struct etch_error err;
    struct etch_elf elf;
    uint64_t address = 0, size = 0;

    (void)state;
    assert_int_equal(etch_elf_variable(SELF, "a_watched_global", &address, &size, &err), 0);
    assert_true(size >= sizeof(a_watched_global)); /* the sanitizers put a fence behind it */
    assert_int_equal(etch_elf_read(&elf, SELF, &err), 0);
    assert_int_equal(address & 4095, (uint64_t)(uintptr_t)a_watched_global & 4095);
}

static void find_no_variable(void **state)
{
    struct etch_error err;
    uint64_t address, size;

    (void)state;
    a_thread_local_one = 1;
    assert_int_equal(etch_elf_variable(SELF, "no_such_thing", &address, &size, &err), -1);
    assert_non_null(strstr(err.what, "no variable of that name"));
    assert_int_equal(etch_elf_variable(SELF, "find_variable", &address, &size, &err), -1); /* a function */
    assert_int_equal(etch_elf_variable(SELF, "a_thread_local_one", &address, &size, &err), -1);
    assert_non_null(strstr(err.what, "thread-local"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_program), cmocka_unit_test(read_build_id), cmocka_unit_test(read_no_elf),
        cmocka_unit_test(read_damaged), cmocka_unit_test(find_variable), cmocka_unit_test(find_no_variable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
