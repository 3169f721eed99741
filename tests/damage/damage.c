/* SPDX-License-Identifier: MIT */
/* Damage to a bundle's records; see damage.h. */
#include "tests/damage/damage.h"
#include "tests/damage/message.h"

#include "proto/etch.pb-c.h"

#include <string.h>

#define RECORDS_MAX 400u /* so that doubling has an end */

uint64_t damage_below(struct damage *damage, uint64_t n)
{
    uint64_t z = damage->random += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % n;
}

void damage_bytes(struct damage *damage, uint8_t *bytes, size_t *size)
{
    if (*size && damage_below(damage, 4) == 0) {
        *size = damage_below(damage, *size);
        return;
    }
    for (uint64_t i = damage_below(damage, 8); *size && i-- > 0;)
        bytes[damage_below(damage, *size)] ^= (uint8_t)(1u << damage_below(damage, 8));
}

/* A record of any kind, each kind as likely as the others: most records are of mappings. */
static size_t pick_record(struct damage *damage, const struct records *records)
{
    uint64_t kinds = 0, skip;
    size_t n = 0;

    for (size_t i = 0; i < records->list.n; i++)
        kinds |= (uint64_t)1 << records->list.v[i].kind % 64;
    skip = damage_below(damage, (uint64_t)__builtin_popcountll(kinds));
    while (skip-- > 0)
        kinds &= kinds - 1;
    for (size_t i = 0; i < records->list.n; i++)
        n += records->list.v[i].kind % 64 == __builtin_ctzll(kinds);
    skip = damage_below(damage, n);
    for (size_t i = 0; i < records->list.n; i++)
        if (records->list.v[i].kind % 64 == __builtin_ctzll(kinds) && skip-- == 0)
            return i;
    return 0;
}

static Etch__Record *unpack(const struct packed_record *record)
{
    return etch__record__unpack(NULL, record->size, record->bytes);
}

/* Changes fields of the record at `at`, as a message. */
static bool damage_fields(struct damage *damage, struct records *records, size_t at, const struct records *other)
{
    struct packed_record *packed = &records->list.v[at];
    const struct packed_record *from =
        other->list.n ? &other->list.v[pick_record(damage, other)] : &records->list.v[at];
    Etch__Record *record = unpack(packed), *donor = unpack(from);
    bool good = true;

    if (record) {
        uint8_t *bytes;

        for (uint64_t i = 1 + damage_below(damage, 3); i-- > 0;)
            damage_message(damage, &record->base, donor ? &donor->base : &record->base);
        bytes = malloc(etch__record__get_packed_size(record) + 1);
        good = bytes;
        if (good) {
            free(packed->bytes);
            packed->bytes = bytes;
            packed->size = etch__record__pack(record, bytes);
            packed->kind = record->body_case ? (uint16_t)record->body_case : packed->kind;
        }
        etch__record__free_unpacked(record, NULL);
    }
    if (donor)
        etch__record__free_unpacked(donor, NULL);
    return good;
}

static void swap(struct records *records, size_t a, size_t b)
{
    struct packed_record kept = records->list.v[a];

    records->list.v[a] = records->list.v[b];
    records->list.v[b] = kept;
}

bool damage_records(struct damage *damage, struct records *records, const struct records *other)
{
    size_t n = records->list.n, at = n ? pick_record(damage, records) : 0;
    struct packed_record *record = n ? &records->list.v[at] : NULL;

    if (!n)
        return !other->list.n || records_insert(records, 0, &other->list.v[pick_record(damage, other)]);
    switch (damage_below(damage, 24)) {
    case 0:
        records_remove(records, at);
        return true;
    case 1:
        return n >= RECORDS_MAX || records_insert(records, damage_below(damage, n + 1), record);
    case 2:
        swap(records, at, damage_below(damage, n));
        return true;
    case 3:
        while (damage_below(damage, 8) == 0 && records->list.n > at)
            records_remove(records, records->list.n - 1);
        return true;
    case 4:
    case 5:
        return !other->list.n || n >= RECORDS_MAX ||
               records_insert(records, damage_below(damage, n + 1), &other->list.v[pick_record(damage, other)]);
    case 6:
        damage_bytes(damage, record->bytes, &record->size); /* a message that may not unpack, under right checksums */
        return true;
    default:
        return damage_fields(damage, records, at, other);
    }
}
