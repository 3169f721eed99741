/* SPDX-License-Identifier: MIT */
/* The map that etch cc --record left in a program's binaries about its recorder: each function's nodes, edges and path
 * numbers, and where the nodes begin in the machine code. Made once per process, then only read, from any thread.
 * Private to decoder/. */
#ifndef ETCH_DECODER_FLOW_SOFT_MAP_H
#define ETCH_DECODER_FLOW_SOFT_MAP_H

#include "base/array.h"
#include "decoder/code.h"
#include "proto/soft_layout.h"

struct etch_soft_function {
    uint64_t address;
    uint32_t nodes, edges, tells;
    bool enters;
    bool dims;                             /* the function can go dark: its last node but one calls the plain copy */
    bool rests;                            /* it can go dark in a loop: its last node but three calls its rest */
    const struct etch_soft_map_node *node; /* within the file; unaligned */
    const struct etch_soft_map_edge *edge;
    uint32_t first_mark; /* its marks of nodes, by node, in the map's `places` */
    uint32_t n_marks;
};

struct etch_soft_place {
    uint64_t address;
    uint32_t function, node;
    uint32_t order; /* among the places at one address: the order in which the code passes them */
};

/* A guard leads to a function, unless another module replaced the function when the program was loaded. */
struct etch_soft_guard {
    uint64_t address;
    uint32_t function;
};

/* A function of the runtime that writes a time. */
struct etch_soft_stamper {
    uint64_t address;
    uint8_t record;
};

struct etch_soft_map {
    uint32_t pid;
    ETCH_ARRAY(struct etch_soft_function) functions; /* by address */
    ETCH_ARRAY(uint64_t) halves;                     /* addresses of functions and guards, low half first */
    ETCH_ARRAY(struct etch_soft_place) places;       /* of nodes, by function, node */
    ETCH_ARRAY(struct etch_soft_place) marks;        /* the same by address */
    ETCH_ARRAY(struct etch_soft_place) flushes;      /* by address */
    ETCH_ARRAY(uint64_t) begins;                     /* of the machine's blocks, by address */
    ETCH_ARRAY(uint64_t) stubs;                      /* stubs, which report their calls, and guards, by address */
    ETCH_ARRAY(struct etch_soft_guard) guards;       /* by address */
    ETCH_ARRAY(uint64_t) plains;                     /* where code without a recorder begins, by address */
    ETCH_ARRAY(struct etch_soft_guard) lits;         /* entries of functions that can go dark, by address */
    ETCH_ARRAY(struct etch_soft_stamper) stamps;     /* functions of the runtime that write TIME or HELD */
    bool unstamped;                                  /* a file lacks the addresses of its own: then none is used */
    size_t damaged;                                  /* functions or marks that make no sense */
};

/* NULL where memory is short. A process without a recorder has an empty map. */
struct etch_soft_map *etch_soft_map_new(const struct etch_code *code, uint32_t pid);
void etch_soft_map_free(struct etch_soft_map *map);

/* Reads one file's sections, at addresses `bias` beyond the file's own. Call etch_soft_map_finish() after the last.
 * False where memory is short. */
bool etch_soft_map_add(struct etch_soft_map *map, const uint8_t *file, size_t size, uint64_t bias);
bool etch_soft_map_finish(struct etch_soft_map *map);

/* The function that begins at `address`; UINT32_MAX: none. */
uint32_t etch_soft_map_function(const struct etch_soft_map *map, uint64_t address);

/* The address of the function or guard with this low half of its address. Among several, the address in the 4 GiB of
 * `near`. 0: there is none. */
uint64_t etch_soft_map_address(const struct etch_soft_map *map, uint32_t half, uint64_t near);

/* Does a stub stand there, for a function of another file that has no recorder, or a guard? */
bool etch_soft_map_is_stub(const struct etch_soft_map *map, uint64_t address);

/* The function that the guard there leads to; UINT32_MAX: there is no guard. */
uint32_t etch_soft_map_guarded(const struct etch_soft_map *map, uint64_t address);

/* The record that the function there writes if the chunk has room: TIME each time that it is called, HELD if a lock is
 * held. 0: it is no such function. */
uint8_t etch_soft_map_stamp(const struct etch_soft_map *map, uint64_t address);

/* Does the plain copy of a function begin there? */
bool etch_soft_map_is_plain(const struct etch_soft_map *map, uint64_t address);

/* The begin of the last plain copy of a function at or before an address; 0: there is none. */
uint64_t etch_soft_map_plain_before(const struct etch_soft_map *map, uint64_t address);

/* The begin of the last stub at or before an address; 0: there is none. */
uint64_t etch_soft_map_stub_before(const struct etch_soft_map *map, uint64_t address);

/* How many edges a node has. */
uint32_t etch_soft_map_edges(const struct etch_soft_function *f, uint32_t node);

/* The first mark at or behind an address, as an index into `marks`; marks.n: none. */
size_t etch_soft_map_mark_at(const struct etch_soft_map *map, uint64_t address);

/* The node's places, `n` of them. */
const struct etch_soft_place *etch_soft_map_places(const struct etch_soft_map *map, uint32_t function, uint32_t node,
                                                   size_t *n);

const struct etch_soft_place *etch_soft_map_flush(const struct etch_soft_map *map, uint64_t address);

/* The begin of the machine's block around an address; the address itself if the block is not known. */
uint64_t etch_soft_map_begin(const struct etch_soft_map *map, uint64_t address);

#endif
