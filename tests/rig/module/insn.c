/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The kernel's own instruction decoder is not exported; branches need only the prefixes and the opcode. */
#include "insn.h"

static bool is_prefix(u8 byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

static enum rig_insn_kind read_group5(u8 modrm)
{
    switch (modrm >> 3 & 7) {
    case 2:
        return RIG_CALL_INDIRECT;
    case 3:
    case 5:
        return RIG_FAR;
    case 4:
        return RIG_JUMP_INDIRECT;
    default:
        return RIG_OTHER;
    }
}

static bool is_string(u8 opcode)
{
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
           (opcode >= 0xaa && opcode <= 0xaf);
}

/* Opcodes of two bytes, `at` the second */
static struct rig_insn read_long(const u8 *bytes, size_t n, size_t at)
{
    u8 opcode = at < n ? bytes[at] : 0;

    if (opcode >= 0x80 && opcode <= 0x8f)
        return (struct rig_insn){RIG_CONDITIONAL, (unsigned)at + 5};
    if (opcode == 0x05 || opcode == 0x07 || opcode == 0x34 || opcode == 0x35)
        return (struct rig_insn){RIG_FAR, 0};
    return (struct rig_insn){RIG_OTHER, 0};
}

static enum rig_insn_kind read_short(u8 opcode, u8 next, bool repeats)
{
    switch (opcode) {
    case 0x9c:
        return RIG_PUSH_FLAGS;
    case 0xc2:
    case 0xc3:
        return RIG_RETURN;
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcd:
    case 0xcf:
    case 0xf1:
        return RIG_FAR;
    case 0xe8:
        return RIG_CALL;
    case 0xe9:
    case 0xeb:
        return RIG_JUMP;
    case 0xff:
        return read_group5(next);
    default:
        return repeats && is_string(opcode) ? RIG_STRING : RIG_OTHER;
    }
}

struct rig_insn rig_insn_read(const u8 *bytes, size_t n)
{
    bool repeats = false;
    size_t at = 0;
    u8 opcode;

    while (at < n && is_prefix(bytes[at])) {
        repeats |= bytes[at] == 0xf2 || bytes[at] == 0xf3;
        at++;
    }
    if (at < n && bytes[at] >> 4 == 4)
        at++;
    if (at >= n)
        return (struct rig_insn){RIG_OTHER, 0};
    opcode = bytes[at];
    if (opcode == 0x0f)
        return read_long(bytes, n, at + 1);
    if (opcode >> 4 == 7 || (opcode >= 0xe0 && opcode <= 0xe3))
        return (struct rig_insn){RIG_CONDITIONAL, (unsigned)at + 2};
    return (struct rig_insn){read_short(opcode, at + 1 < n ? bytes[at + 1] : 0, repeats), 0};
}
