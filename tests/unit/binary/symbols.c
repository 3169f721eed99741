/* SPDX-License-Identifier: MIT */
#include "binary/symbols.h"
#include "tests/unit/steps_made.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <cmocka.h>

MADE_FUNCTION(whole);
MADE_FUNCTION(unrelated);
/* A function's cold part, as a compiler moves it away, and assembler without sizes. */
extern const char cold_part[], sizeless[];
__asm__(".pushsection .text\n"
        ".type whole.cold,@function\nwhole.cold:\ncold_part:\n.fill 16,1,0x90\n.size whole.cold,16\n"
        ".globl sizeless\nsizeless:\n.fill 16,1,0x90\n"
        ".popsection\n");

static struct etch_symbols *symbols_new(void)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);

    assert_non_null(symbols);
    return symbols;
}

static void find_symbol_with_offset(void **state)
{
    struct etch_symbols *symbols = symbols_new();
    struct etch_location location;

    (void)state;
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)whole + 5, &location);
    assert_int_equal(location.source, ETCH_LOCATION_ELF);
    assert_string_equal(location.symbol, "whole");
    assert_int_equal(location.offset, 5);
    assert_false(location.is_entry);
    assert_int_equal(location.until, (uintptr_t)whole + 64);
    assert_null(location.frame.file);
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)sizeless + 3, &location);
    assert_string_equal(location.symbol, "sizeless");
    etch_symbols_free(symbols);
}

static void join_cold_part(void **state)
{
    struct etch_symbols *symbols = symbols_new();
    struct etch_location entry, part, other;

    (void)state;
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)whole, &entry);
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)cold_part, &part);
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)unrelated, &other);
    assert_true(entry.is_entry);
    assert_false(part.is_entry);
    assert_int_equal(entry.function_id, part.function_id);
    assert_int_not_equal(entry.function_id, other.function_id);
    etch_symbols_free(symbols);
}

/* Another recording's image of the same file, at another address, finds the module that is there already; an image at
 * the address of one that was freed is not taken for it. */
static void serve_many_recordings(void **state)
{
    struct etch_symbols *symbols = symbols_new();
    struct etch_location first, second, other;
    Etch__Image *image = malloc(sizeof(*image));
    char missing[] = "/nowhere";
    size_t loaded;

    (void)state;
    assert_non_null(image);
    *image = *made_image_get();
    etch_symbols_find(symbols, image, (uintptr_t)whole, &first);
    loaded = etch_symbols_loaded(symbols);
    assert_true(loaded <= 1);
    etch_symbols_forget_images(symbols);
    image->start += 0x10000;
    etch_symbols_find(symbols, image, (uintptr_t)whole + 0x10000, &second);
    assert_ptr_equal(first.symbol, second.symbol);
    assert_int_equal(first.function_id, second.function_id);
    etch_symbols_forget_images(symbols);
    image->path = missing;
    etch_symbols_find(symbols, image, (uintptr_t)whole + 0x10000, &other);
    assert_null(other.symbol);
    assert_string_equal(first.symbol, "whole"); /* still there */
    assert_int_equal(etch_symbols_loaded(symbols), loaded);
    etch_symbols_forget_images(symbols);
    free(image);
    etch_symbols_find(symbols, made_image_get(), (uintptr_t)whole, &second);
    assert_ptr_equal(first.symbol, second.symbol);
    etch_symbols_free(symbols);
}

static void name_nothing_of_other_build(void **state)
{
    struct etch_symbols *symbols = symbols_new();
    struct etch_location location;
    Etch__Image image = *made_image_get();
    uint8_t id[20] = {1, 2, 3};

    (void)state;
    image.build_id.data = id;
    image.build_id.len = sizeof(id);
    etch_symbols_find(symbols, &image, (uintptr_t)whole, &location);
    assert_int_equal(location.source, ETCH_LOCATION_NOTHING);
    assert_null(location.symbol);
    assert_null(location.frame.function);
    assert_int_equal(location.module_offset, (uintptr_t)whole - image.start + image.file_offset);
    assert_non_null(strstr(etch_symbols_why_unknown(symbols, &image), "build-id"));
    etch_symbols_free(symbols);
}

static void name_nothing_of_missing_file(void **state)
{
    static const char *const paths[] = {"/no/such/file", "/dev/zero", "/", "[heap]", "", "/etc/passwd"};
    struct etch_symbols *symbols = symbols_new();
    Etch__Image images[6];
    struct etch_location location;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        etch__image__init(&images[i]);
        images[i].path = (char *)paths[i];
        images[i].start = 0x1000;
        images[i].size = 0x1000;
        etch_symbols_find(symbols, &images[i], 0x1234, &location);
        assert_int_equal(location.source, ETCH_LOCATION_NOTHING);
        assert_string_equal(location.module, paths[i]);
        assert_int_equal(location.module_offset, 0x234);
        assert_non_null(etch_symbols_why_unknown(symbols, &images[i]));
    }
    etch_symbols_find(symbols, NULL, 0x1234, &location);
    assert_int_equal(location.source, ETCH_LOCATION_NOTHING);
    etch_symbols_free(symbols);
}

/* How much of it is mapped: one page, two, or more. */
static uint64_t vdso_size(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char line[512];
    uint64_t size = 0;

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            size = end - start;
    if (maps)
        fclose(maps);
    return size;
}

static void read_vdso_from_memory(void **state)
{
    const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
    struct etch_symbols *symbols = symbols_new();
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_location location;
    bool found = false;

    (void)state;
    if (!vdso)
        skip();
    image.path = (char *)"[vdso]";
    image.start = (uintptr_t)vdso;
    image.size = image.code.len = vdso_size();
    image.code.data = (uint8_t *)(uintptr_t)vdso;
    for (uint64_t at = image.start; at < image.start + image.size; at += 16) {
        etch_symbols_find(symbols, &image, at, &location);
        found |= location.symbol && strstr(location.symbol, "clock_gettime");
    }
    assert_true(found);
    assert_null(etch_symbols_why_unknown(symbols, &image));
    etch_symbols_free(symbols);
}

struct seeker {
    struct etch_symbols *symbols;
    uint64_t sum;
};

static void *seek(void *context)
{
    struct seeker *seeker = context;
    const Etch__Image *image = made_image_get();

    for (uint64_t at = image->start; at < image->start + image->size; at += 7) {
        struct etch_location location;

        etch_symbols_find(seeker->symbols, image, at, &location);
        seeker->sum = seeker->sum * 31 + location.frame.line + location.offset;
        assert_true(location.until > at);
    }
    return NULL;
}

static void find_from_several_threads(void **state)
{
    struct seeker seekers[4], alone = {symbols_new(), 0};
    pthread_t threads[4];

    (void)state;
    seek(&alone);
    etch_symbols_free(alone.symbols);
    seekers[0].symbols = symbols_new();
    for (int i = 0; i < 4; i++) {
        seekers[i] = (struct seeker){seekers[0].symbols, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, seek, &seekers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(seekers[i].sum, alone.sum);
    }
    etch_symbols_free(seekers[0].symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_symbol_with_offset),      cmocka_unit_test(join_cold_part),
        cmocka_unit_test(serve_many_recordings),        cmocka_unit_test(name_nothing_of_other_build),
        cmocka_unit_test(name_nothing_of_missing_file), cmocka_unit_test(read_vdso_from_memory),
        cmocka_unit_test(find_from_several_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
