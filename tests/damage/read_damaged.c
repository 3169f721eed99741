/* SPDX-License-Identifier: MIT */
/* read_damaged BUNDLES SEED INPUT...: damages so many bundles, of inputs of pack_runs, and reads what came of it, in
 * one process. 0: each input as it is. Says how many came to a sketch, and why others did not.
 * read_damaged --write OUT SEED BUNDLE: only damages one, and writes it. */
#include "tests/damage/input.h"
#include "tests/damage/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE (1u << 20)
#define REASONS 24u

struct bytes {
    uint8_t *data;
    size_t size;
};

struct reason {
    char why[512];
    unsigned count;
};

static struct reason reasons[REASONS];

static __attribute__((noreturn)) void die(const char *what)
{
    fprintf(stderr, "read_damaged: %s\n", what);
    exit(1);
}

static struct bytes read_input(const char *path)
{
    struct bytes b = {malloc(MAX_SIZE), 0};
    FILE *in = fopen(path, "rbe");

    if (!in || !b.data)
        die(path);
    b.size = fread(b.data, 1, MAX_SIZE, in);
    fclose(in);
    return b;
}

/* Refusals alike but for the file's name and numbers count as one. */
static void count_reason(const char *why)
{
    char like[512];
    size_t n = 0;

    for (; *why && n + 1 < sizeof(like); why++)
        if (*why < '0' || *why > '9')
            like[n++] = *why;
    like[n] = '\0';
    for (size_t i = 0; i < REASONS; i++) {
        if (!reasons[i].count)
            snprintf(reasons[i].why, sizeof(reasons[i].why), "%s", like);
        else if (strcmp(reasons[i].why, like) != 0)
            continue;
        reasons[i].count++;
        return;
    }
}

static void take(struct readers *readers, const struct bytes *bytes, struct readers_result *result)
{
    uint64_t before = result->without_sketch;
    struct input input;

    if (!input_split(&input, bytes->data, bytes->size))
        die("this is no input of pack_runs");
    readers_take(readers, &input, result);
    if (result->without_sketch > before)
        count_reason(result->why);
}

/* Damage in what the records say for most seeds, else in the file's own bytes. */
static int write_damaged(const char *path, struct damage damage, const char *from)
{
    struct bytes b = read_input(from);
    struct records records = {0};
    uint8_t *file = NULL;
    size_t size = 0;
    FILE *out = fopen(path, "wbe");
    bool good = out && records_read(&records, b.data, b.size);

    for (uint64_t i = 1 + damage_below(&damage, 4); good && i-- > 0;)
        good = damage_records(&damage, &records, &records);
    file = good ? records_write(&records, &size) : NULL;
    if (file && damage_below(&damage, 4) == 0)
        damage_bytes(&damage, file, &size);
    good = file && fwrite(file, 1, size, out) == size;
    if (!good || fclose(out) != 0)
        die(path);
    free(file);
    free(b.data);
    records_release(&records);
    return 0;
}

static int read_many(int argc, char **argv)
{
    size_t bundles = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
    struct damage damage = {argc > 3 ? strtoul(argv[2], NULL, 10) : 0};
    struct bytes damaged = {malloc(MAX_SIZE), 0}, *inputs = calloc((size_t)argc, sizeof(*inputs));
    struct readers *readers = readers_new();
    struct readers_result result = {0};
    size_t n = 0, done = 0;

    if (argc < 4 || !inputs || !readers || !damaged.data)
        die("usage: read_damaged BUNDLES SEED INPUT...");
    for (; n + 3 < (size_t)argc; n++)
        inputs[n] = read_input(argv[n + 3]);
    for (size_t i = 0; bundles == 0 && i < n; i++)
        take(readers, &inputs[i], &result);
    while (done < bundles) {
        const struct bytes *from = &inputs[damage_below(&damage, n)];

        memcpy(damaged.data, from->data, from->size);
        damaged.size = input_damage_all(&damage, damaged.data, from->size, MAX_SIZE, &done);
        take(readers, &damaged, &result);
    }
    printf("%zu bundles damaged; %llu read, %llu refused; %llu sketches, %llu inputs without\n", done,
           (unsigned long long)result.taken, (unsigned long long)result.refused, (unsigned long long)result.sketches,
           (unsigned long long)result.without_sketch);
    for (size_t i = 0; i < REASONS && reasons[i].count; i++)
        printf("%6u  %s\n", reasons[i].count, reasons[i].why);
    for (size_t i = 0; i < n; i++)
        free(inputs[i].data);
    free(inputs);
    free(damaged.data);
    readers_free(readers);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--write") == 0)
        return write_damaged(argv[2], (struct damage){strtoul(argv[3], NULL, 10)}, argv[4]);
    return read_many(argc, argv);
}
