/* SPDX-License-Identifier: MIT */
/* A place to watch: its grammar and its address; see place.h. */
#include "collector/session/place.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX (1u << 20) /* of one watch, in bytes */

static int bad(const char *text, const char *why, struct etch_error *err)
{
    etch_error_set(err, "cannot watch '%s': %s", text, why);
    return etch_error_advise(err,
                             "NAME, NAME[3]:4, NAME+16:8, *NAME+8:4, 0x4010:4:rw; etch record --help has all forms");
}

bool etch_place_fits(uint64_t address, uint64_t size)
{
    return (size == 1 || size == 2 || size == 4 || size == 8) && address % size == 0;
}

/* ---- Operands ---- */

static const char *const register_names[24] = {"rax", "rbx",   "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
                                               "rip", "flags", "cs",  "ss",  "ds",  "es",  "fs",  "gs",
                                               "r8",  "r9",    "r10", "r11", "r12", "r13", "r14", "r15"};

static bool register_number(const char *name, size_t n, uint8_t *number)
{
    *number = ETCH_NO_REGISTER;
    if (n == 0 || (n == 4 && strncmp(name, "none", 4) == 0))
        return true;
    for (uint8_t i = 0; i < 24; i++)
        if (strlen(register_names[i]) == n && strncmp(register_names[i], name, n) == 0 && (i < 8 || i >= 16))
            *number = i;
    return *number != ETCH_NO_REGISTER;
}

int etch_place_operand_parse(struct etch_place_operand *operand, const char *text, struct etch_error *err)
{
    const char *at = text;
    size_t n = strcspn(at, ",");
    unsigned long scale;
    char *end;

    memset(operand, 0, sizeof(*operand));
    if (at[n] != ',' || !register_number(at, n, &operand->base))
        return etch_error_set(err, "'%s' is no address operand: base register", text);
    at += n + 1;
    n = strcspn(at, ",");
    if (at[n] != ',' || !register_number(at, n, &operand->index))
        return etch_error_set(err, "'%s' is no address operand: index register", text);
    at += n + 1;
    scale = strtoul(at, &end, 10);
    if (*end != ',' || scale > 8)
        return etch_error_set(err, "'%s' is no address operand: scale", text);
    operand->scale = (uint8_t)scale;
    operand->offset = strtoll(end + 1, &end, 0);
    return *end ? etch_error_set(err, "'%s' is no address operand: offset", text) : 0;
}

uint64_t etch_place_operand_address(const struct etch_place_operand *operand, const uint64_t registers[24])
{
    uint64_t address = (uint64_t)operand->offset;

    if (operand->base != ETCH_NO_REGISTER)
        address += registers[operand->base];
    if (operand->index != ETCH_NO_REGISTER)
        address += registers[operand->index] * operand->scale;
    return address;
}

/* ---- Places ---- */

static bool number(const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 0);
    return isdigit((unsigned char)*text) && !*end && !errno;
}

/* The last suffix of `text`: its colon, unless that is half of a "::" in a name. */
static char *last_suffix(char *text)
{
    char *colon = strrchr(text, ':');

    return colon && colon > text && colon[-1] == ':' ? NULL : colon;
}

/* Takes ":here", ":rw" and ":LENGTH" off the end of `text`. */
static bool take_suffixes(struct etch_place *p, char *text)
{
    char *colon = last_suffix(text);
    uint64_t size;

    p->reads = p->writes = true;
    if (colon && *text == '@' && strcmp(colon, ":here") == 0) {
        p->here = true;
        *colon = '\0';
        colon = last_suffix(text);
    }
    if (colon && (strcmp(colon, ":w") == 0 || strcmp(colon, ":rw") == 0 || strcmp(colon, ":r") == 0)) {
        p->reads = strchr(colon, 'r') != NULL;
        p->writes = strchr(colon, 'w') != NULL;
        *colon = '\0';
        colon = last_suffix(text);
    }
    if (!colon)
        return true;
    if (!number(colon + 1, &size) || !size || size > LENGTH_MAX)
        return false;
    p->size = (uint32_t)size;
    *colon = '\0';
    return true;
}

/* A name may contain the :: of C++, and no other colon. */
static bool is_name(const char *text)
{
    for (const char *at = strchr(text, ':'); at; at = strchr(at + 2, ':'))
        if (at[1] != ':')
            return false;
    return *text && !strpbrk(text, "= ");
}

/* NAME[INDEX]+OFFSET or a plain number. */
static bool take_name(struct etch_place *p, char *text)
{
    char *plus, *bracket;

    if (isdigit((unsigned char)*text))
        return number(text, &p->address);
    plus = strrchr(text, '+');
    if (plus) {
        *plus = '\0';
        if (!number(plus + 1, &p->address))
            return false;
    }
    bracket = strchr(text, '[');
    if (bracket) {
        char *close = strchr(bracket, ']');

        if (!close || close[1])
            return false;
        *bracket = *close = '\0';
        if (!number(bracket + 1, &p->index))
            return false;
        p->indexed = true;
    }
    snprintf(p->name, sizeof(p->name), "%s", text);
    return is_name(text);
}

static int parse_site(struct etch_place *p, char *text, const char *whole, struct etch_error *err)
{
    char *equals = strchr(text, '=');

    p->site = true;
    if (!p->size)
        return bad(whole, "a site needs a length", err);
    if (equals) {
        *equals = '\0';
        p->by_operand = true;
        if (etch_place_operand_parse(&p->operand, equals + 1, err) < 0)
            return etch_error_prefix(err, "cannot watch '%s'", whole);
    }
    return take_name(p, text) && !p->indexed ? 0 : bad(whole, "its instruction is not an address or NAME+OFFSET", err);
}

int etch_place_parse(struct etch_place *place, const char *text, struct etch_error *err)
{
    char copy[256];
    char *at = copy;

    memset(place, 0, sizeof(*place));
    if (strlen(text) >= sizeof(copy))
        return bad("...", "too long", err);
    snprintf(copy, sizeof(copy), "%s", text);
    snprintf(place->text, sizeof(place->text), "%s", text);
    if (!take_suffixes(place, at))
        return bad(text, "a length is a number of bytes, from 1 to 1048576", err);
    if (*at == '@')
        return parse_site(place, at + 1, text, err);
    if (*at == '*') {
        place->dereference = true;
        at++;
    }
    if (!take_name(place, at))
        return bad(text, "not understood", err);
    if (!place->name[0] && !place->size)
        return bad(text, "an address needs a length", err);
    if (!place->name[0] && place->address + place->size < place->address)
        return bad(text, "it goes beyond the end of memory", err);
    return 0;
}

/* A dot before a digit is the compiler's: counter.0 is a static variable of a function. */
static bool is_field(const char *name)
{
    const char *dot = strchr(name, '.');

    return strpbrk(name, "->") || (dot && !isdigit((unsigned char)dot[1]));
}

int etch_place_suits_debug_register(const struct etch_place *p, struct etch_error *err)
{
    if (p->size && !etch_place_fits(0, p->size))
        return bad(p->text, "a length is 1, 2, 4 or 8 bytes in a debug register", err);
    if (!p->writes)
        return bad(p->text, "x86 has no watchpoint for reads alone; :rw sees both", err);
    if (p->here)
        return bad(p->text, "a debug register watches a location, whichever instruction uses it; :here is of vpt", err);
    if (p->site && !p->by_operand)
        return bad(p->text, "a site needs =BASE,INDEX,SCALE,OFFSET: only vpt sees what an instruction uses", err);
    if (!p->site && is_field(p->name)) {
        etch_error_set(err, "cannot watch '%s': a field's place needs debug information", p->text);
        return etch_error_advise(err, "NAME+OFFSET:LENGTH, with the offset that gdb's 'ptype /o' shows");
    }
    return 0;
}

int etch_place_suits_emulator(const struct etch_place *p, struct etch_error *err)
{
    if (p->by_operand) {
        etch_error_set(
            err, "cannot watch '%s' with vpt: it takes the location from the instruction, not from registers", p->text);
        return etch_error_advise(err, "@SITE:LENGTH, for what the instruction reads or writes; or --source none");
    }
    if (p->dereference) {
        etch_error_set(err,
                       "cannot watch '%s' with vpt: its watches are set before the program begins, and '%s' points "
                       "nowhere then",
                       p->text, p->name);
        return etch_error_advise(err, "@SITE:LENGTH, for what an instruction reads or writes");
    }
    return 0;
}

static int no_symbol(const struct etch_place *p, struct etch_error *err)
{
    etch_error_set(err, "cannot watch '%s': the program has no symbol '%s'", p->text, p->name);
    return etch_error_advise(err, "nm PROGRAM lists them; a stripped program has none, give ADDRESS:LENGTH");
}

static int find_site(const struct etch_place *p, const char *path, uint64_t *address, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_symbol symbol = {0};
    size_t n = 1;

    if (p->name[0]) {
        if (etch_object_open(&object, path, err) < 0)
            return -1;
        n = etch_object_symbol(object, p->name, &symbol);
        etch_object_free(object);
    }
    *address = symbol.address + p->address;
    return n ? 0 : no_symbol(p, err);
}

int etch_place_find_in_file(const struct etch_place *p, const char *path, uint64_t *address, uint64_t *size,
                            struct etch_error *err)
{
    uint64_t within = p->address + p->index * p->size, whole = 0;

    *size = p->size;
    if (p->site)
        return find_site(p, path, address, err);
    *address = 0;
    if (p->name[0] && etch_elf_variable(path, p->name, address, &whole, err) < 0)
        return -1;
    if (p->name[0] && !p->size)
        *size = whole > within ? whole - within : 0;
    *address += within;
    if (p->indexed && !p->size) {
        etch_error_set(err, "cannot watch '%s': the size of an element is not known", p->text);
        return etch_error_advise(err, "give it: '%s:4' for an array of int", p->text);
    }
    if (p->name[0] && within && whole && within + *size > whole)
        return etch_error_set(err, "cannot watch '%s': '%s' has only %" PRIu64 " bytes", p->text, p->name, whole);
    if (*size && *size <= UINT32_MAX)
        return 0;
    etch_error_set(err, "cannot watch '%s': its size is not known", p->text);
    return etch_error_advise(err, "%s:LENGTH", p->name);
}

static int find_name(const struct etch_place *p, const struct etch_object *object, struct etch_symbol *symbol,
                     struct etch_error *err)
{
    size_t n = etch_object_symbol(object, p->name, symbol);

    if (n == 0)
        return no_symbol(p, err);
    if (n > 1) {
        etch_error_set(err, "cannot watch '%s': %zu variables have this name", p->text, n);
        return etch_error_advise(err, "give ADDRESS:LENGTH; nm PROGRAM shows the addresses");
    }
    if (symbol->thread_local_)
        return etch_error_set(err, "cannot watch '%s': each thread has its own", p->text);
    return 0;
}

/* Finds the length if the user gave none, and checks that an index is possible. */
static int measure(const struct etch_place *p, const struct etch_symbol *symbol, uint32_t *size, struct etch_error *err)
{
    *size = p->size ? p->size : p->dereference ? 8 : (uint32_t)(symbol->size > 8 ? 0 : symbol->size);
    if (p->indexed && (!p->size || (!p->dereference && symbol->size % p->size))) {
        etch_error_set(err, "cannot watch '%s': the size of an element is not known", p->text);
        return etch_error_advise(err, "give it: '%s:4' for an array of int", p->text);
    }
    if (!*size || !etch_place_fits(0, *size)) {
        etch_error_set(err, "cannot watch '%s': it has %" PRIu64 " bytes, a watchpoint covers 1, 2, 4 or 8", p->text,
                       symbol->size);
        return etch_error_advise(err, "choose some: '%s+0:8'", p->text);
    }
    return 0;
}

int etch_place_find(const struct etch_place *place, const struct etch_object *object, uint64_t bias,
                    etch_place_read *read, void *context, uint64_t *address, uint32_t *size, struct etch_error *err)
{
    struct etch_symbol symbol = {0};
    uint64_t at, within = place->address + place->index * place->size;

    if (place->name[0] && find_name(place, object, &symbol, err) < 0)
        return -1;
    *size = place->size;
    if (place->site) {
        *address = symbol.address + place->address + bias;
        *size = 0;
        return 0;
    }
    at = place->name[0] ? symbol.address + bias : place->in_file ? bias : 0;
    if (place->name[0] && measure(place, &symbol, size, err) < 0)
        return -1;
    if (place->dereference) {
        uint64_t pointer = 0;

        if (read(context, at, &pointer, 8) != 8 || !pointer) {
            etch_error_set(err, "cannot watch '%s': '%s' points nowhere when the watch is set", place->text,
                           place->name);
            return etch_error_advise(err,
                                     "set it later: --pid of the running program, or @PLACE=... at an instruction");
        }
        at = pointer;
    } else if (place->name[0] && symbol.size && within + *size > symbol.size) {
        return etch_error_set(err, "cannot watch '%s': '%s' has only %" PRIu64 " bytes", place->text, place->name,
                              symbol.size);
    }
    *address = at + within;
    if (etch_place_fits(*address, *size))
        return 0;
    etch_error_set(err, "cannot watch '%s': 0x%" PRIx64 " is not a multiple of %u", place->text, *address, *size);
    return etch_error_advise(err, "a smaller length, or two watches");
}
