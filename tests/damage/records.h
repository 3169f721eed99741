/* SPDX-License-Identifier: MIT */
/* A bundle as a list of packed records, and back into a file whose checksums are right. So tests can change what is in
 * a bundle: damage to the bytes of the file itself never gets past the checksums. */
#ifndef ETCH_TESTS_DAMAGE_RECORDS_H
#define ETCH_TESTS_DAMAGE_RECORDS_H

#include "base/array.h"

#include <stdint.h>

struct packed_record {
    uint8_t *bytes; /* a serialised etch.Record; may be none */
    size_t size;
    uint16_t kind; /* as the frame says */
};

struct records {
    ETCH_ARRAY(struct packed_record) list;
};

void records_release(struct records *records);

/* Appends the records of a file; what is no whole frame is left out. False when memory is short. */
bool records_read(struct records *records, const uint8_t *data, size_t size);

/* The file, to be freed; NULL when memory is short. */
uint8_t *records_write(const struct records *records, size_t *size);

bool records_insert(struct records *records, size_t at, const struct packed_record *record);
void records_remove(struct records *records, size_t at);

#endif
