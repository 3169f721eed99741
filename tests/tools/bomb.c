/* SPDX-License-Identifier: MIT */
/* bomb FILE KIND N: a small bundle that takes much memory. KIND is accesses (empty ones, 200,000 a record, which a
 * reader of recordings keeps) or images (with a name of 15 MiB, which etch info keeps); N is how many records. */
#include "proto/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_RECORD 200000u
#define NAME_SIZE ((size_t)15 << 20)

static int write_all(struct etch_bundle_writer *writer, const Etch__Record *record, unsigned n, struct etch_error *err)
{
    for (unsigned i = 0; i < n; i++)
        if (etch_bundle_write(writer, record, err) < 0)
            return -1;
    return 0;
}

static int write_accesses(struct etch_bundle_writer *writer, unsigned n, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;
    Etch__Accesses accesses = ETCH__ACCESSES__INIT;
    Etch__Access access = ETCH__ACCESS__INIT;
    Etch__Access **list = malloc(PER_RECORD * sizeof(Etch__Access *));
    int status;

    for (size_t i = 0; list && i < PER_RECORD; i++)
        list[i] = &access;
    accesses.n_accesses = list ? PER_RECORD : 0;
    accesses.accesses = list;
    record.body_case = ETCH__RECORD__BODY_ACCESSES;
    record.accesses = &accesses;
    status = write_all(writer, &record, n, err);
    free(list);
    return status;
}

static int write_images(struct etch_bundle_writer *writer, unsigned n, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;
    Etch__Image image = ETCH__IMAGE__INIT;
    char *name = malloc(NAME_SIZE + 1);
    int status;

    if (!name)
        return etch_error_set(err, "out of memory");
    memset(name, 'a', NAME_SIZE);
    name[NAME_SIZE] = '\0';
    image.path = name;
    record.body_case = ETCH__RECORD__BODY_IMAGE;
    record.image = &image;
    status = write_all(writer, &record, n, err);
    free(name);
    return status;
}

int main(int argc, char **argv)
{
    struct etch_bundle_writer *writer = NULL;
    struct etch_error err;
    unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    int status = argc == 4 ? etch_bundle_create(&writer, argv[1], &err) : etch_error_set(&err, "FILE KIND N");

    if (status == 0)
        status = strcmp(argv[2], "images") == 0 ? write_images(writer, n, &err) : write_accesses(writer, n, &err);
    if (status == 0)
        status = etch_bundle_finish(writer, &err);
    if (status < 0)
        etch_error_print(&err, "bomb", stderr);
    etch_bundle_writer_free(writer);
    return status < 0;
}
