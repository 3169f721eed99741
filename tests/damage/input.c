/* SPDX-License-Identifier: MIT */
/* Several bundles as one run of bytes; see input.h. */
#include "tests/damage/input.h"

#include <string.h>

bool input_split(struct input *input, const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t at = end ? (size_t)(end - data) : 0;

    if (!end || at >= sizeof(input->program))
        return false;
    memcpy(input->program, data, at);
    input->program[at++] = '\0';
    input->n = 0;
    while (input->n < INPUT_FILES && size - at >= 4) {
        uint32_t length;

        memcpy(&length, data + at, 4);
        at += 4;
        length = length < size - at ? length : (uint32_t)(size - at);
        input->files[input->n++] = (struct input_file){data + at, length};
        at += length;
    }
    return true;
}

/* Returns the size of the input, 0 where it does not fit. */
static size_t join(const struct input *input, uint8_t *to, size_t max)
{
    size_t at = strlen(input->program) + 1, need = at;

    for (size_t i = 0; i < input->n; i++)
        need += 4 + input->files[i].size;
    if (need > max)
        return 0;
    memcpy(to, input->program, at - 1);
    to[at - 1] = '\n';
    for (size_t i = 0; i < input->n; i++) {
        uint32_t length = (uint32_t)input->files[i].size;

        memcpy(to + at, &length, 4);
        if (length)
            memcpy(to + at + 4, input->files[i].bytes, length);
        at += 4 + length;
    }
    return at;
}

/* Damages file `at` of `input`, taking from `from`, and puts all of it into `to`. */
static size_t damage_file(struct damage *damage, struct input *input, size_t at, const struct input_file *from,
                          uint8_t *to, size_t max)
{
    struct records records = {0}, other = {0};
    uint8_t *file = NULL, *copy = NULL;
    size_t size = 0;
    bool good = records_read(&records, input->files[at].bytes, input->files[at].size) &&
                records_read(&other, from->bytes, from->size);

    for (uint64_t i = 1 + damage_below(damage, 4); good && i-- > 0;)
        good = damage_records(damage, &records, &other);
    file = good ? records_write(&records, &size) : NULL;
    if (file && damage_below(damage, 32) == 0)
        damage_bytes(damage, file, &size);
    if (file) {
        input->files[at] = (struct input_file){file, size};
        copy = malloc(max);
        size = copy ? join(input, copy, max) : 0; /* the input's files may lie where the result goes */
        if (size)
            memcpy(to, copy, size);
    }
    free(copy);
    free(file);
    records_release(&records);
    records_release(&other);
    return size;
}

size_t input_damage(struct damage *damage, uint8_t *data, size_t size, size_t max)
{
    struct input input;
    size_t at, made;

    if (!input_split(&input, data, size) || !input.n)
        return size;
    at = damage_below(damage, input.n);
    made = damage_file(damage, &input, at, &input.files[damage_below(damage, input.n)], data, max);
    return made ? made : size;
}

size_t input_damage_all(struct damage *damage, uint8_t *data, size_t size, size_t max, size_t *damaged)
{
    struct input input;
    size_t made = size;

    for (size_t i = 0; made && input_split(&input, data, made) && i < input.n; i++) {
        size = made;
        made = damage_file(damage, &input, i, &input.files[damage_below(damage, input.n)], data, max);
        *damaged += made != 0;
    }
    return made ? made : size;
}

size_t input_cross(struct damage *damage, const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
                   uint8_t *out, size_t max)
{
    struct input into, from;
    size_t at = damage_below(damage, INPUT_FILES);

    if (!input_split(&into, one, one_size) || !input_split(&from, other, other_size) || !from.n)
        return 0;
    if (at < into.n)
        return damage_file(damage, &into, at, &from.files[damage_below(damage, from.n)], out, max);
    if (into.n == INPUT_FILES)
        return 0;
    into.files[into.n++] = from.files[damage_below(damage, from.n)]; /* a run more */
    return join(&into, out, max);
}
