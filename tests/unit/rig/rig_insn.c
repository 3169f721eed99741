/* SPDX-License-Identifier: MIT */
/* The rig's small instruction reader against a full disassembler, on all the code of the C library. */
#include "tests/rig/module/insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <Zydis/Zydis.h>

static unsigned seen[RIG_STRING + 1];

static enum rig_insn_kind branch_kind(const ZydisDecodedInstruction *in)
{
    bool direct = in->raw.imm[0].is_relative;

    switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        if (in->mnemonic == ZYDIS_MNEMONIC_XBEGIN || in->mnemonic == ZYDIS_MNEMONIC_XEND)
            return RIG_OTHER; /* there are no transactions in the guest */
        return RIG_CONDITIONAL;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (in->mnemonic != ZYDIS_MNEMONIC_JMP)
            return RIG_OTHER;
        return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? RIG_FAR : direct ? RIG_JUMP : RIG_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? RIG_FAR : direct ? RIG_CALL : RIG_CALL_INDIRECT;
    case ZYDIS_CATEGORY_RET:
        return in->mnemonic == ZYDIS_MNEMONIC_RET && in->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR ? RIG_RETURN
                                                                                                   : RIG_FAR;
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
        return RIG_FAR;
    default:
        return RIG_OTHER;
    }
}

static enum rig_insn_kind kind_of(const ZydisDecodedInstruction *in)
{
    const ZydisInstructionAttributes repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;

    if (in->mnemonic == ZYDIS_MNEMONIC_PUSHF || in->mnemonic == ZYDIS_MNEMONIC_PUSHFQ)
        return RIG_PUSH_FLAGS;
    if (in->attributes & repeats)
        return RIG_STRING;
    return branch_kind(in);
}

static void compare(const uint8_t *bytes, const ZydisDecodedInstruction *in)
{
    struct rig_insn got = rig_insn_read(bytes, in->length);
    enum rig_insn_kind want = kind_of(in);

    seen[want]++;
    if (got.kind != want || (want == RIG_CONDITIONAL && got.length != in->length)) {
        fprintf(stderr, "%s of %u bytes (%02x %02x %02x): %d of %u bytes instead of %d\n",
                ZydisMnemonicGetString(in->mnemonic), in->length, bytes[0], bytes[1], bytes[2], got.kind, got.length,
                want);
        fail();
    }
}

static void read_code(const uint8_t *code, size_t size)
{
    ZydisDecoder decoder;
    size_t at = 0;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    while (at < size) {
        ZydisDecodedInstruction in;

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at, size - at, &in))) {
            at++; /* a table between functions */
            continue;
        }
        compare(code + at, &in);
        at += in.length;
    }
}

static void read_the_c_library(void **state)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    unsigned found = 0;

    (void)state;
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        uintptr_t begin, end;
        char prot[5];

        if (!strstr(line, "libc.so") || sscanf(line, "%lx-%lx %4s", &begin, &end, prot) != 3 || !strchr(prot, 'x'))
            continue;
        read_code((const uint8_t *)begin, end - begin);
        found++;
    }
    fclose(maps);
    assert_true(found > 0);
    assert_true(seen[RIG_CONDITIONAL] > 1000 && seen[RIG_CALL] > 1000 && seen[RIG_RETURN] > 1000);
    assert_true(seen[RIG_JUMP] && seen[RIG_JUMP_INDIRECT] && seen[RIG_CALL_INDIRECT] && seen[RIG_FAR] &&
                seen[RIG_STRING]);
}

/* Whatever the bytes, however few: nothing beyond them is read. */
static void read_cut_short(void **state)
{
    static const uint8_t code[] = {0x66, 0x48, 0x0f, 0x84, 0, 0, 0, 0};

    (void)state;
    for (size_t n = 0; n <= sizeof(code); n++) {
        uint8_t *exact = malloc(n + 1);

        memcpy(exact, code, n);
        assert_int_equal(rig_insn_read(exact, n).kind, n < 4 ? RIG_OTHER : RIG_CONDITIONAL);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_the_c_library), cmocka_unit_test(read_cut_short)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
