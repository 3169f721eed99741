/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Watchpoints of stepped code. QEMU hangs if a data breakpoint fires on an instruction that runs with the trap flag. So
 * the debug registers are off while a CPU steps. After each step the instruction is read, and perf's own handler of
 * breakpoints is called if the instruction accessed a watched address. What this does not see: push, call and pop of
 * memory that is watched, and rare instructions without an operand in memory by ModRM. */
#include "rig.h"

#include <asm/debugreg.h>
#include <asm/insn-eval.h>
#include <asm/insn.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/uaccess.h>

enum { SLOTS = 4, ON_EXECUTE = 0, ON_WRITE = 1 };

static unsigned long (*lookup)(const char *name);
static int (*decode)(struct insn *insn, const void *bytes, int n, enum insn_mode mode);
static void __user *(*address_of)(struct insn *insn, struct pt_regs *regs);
static int (*fire)(struct notifier_block *block, unsigned long what, void *data);

void rig_watch_silence(void)
{
    if (this_cpu_read(cpu_dr7))
        set_debugreg(0UL, 7);
}

void rig_watch_restore(void)
{
    if (this_cpu_read(cpu_dr7))
        set_debugreg(this_cpu_read(cpu_dr7), 7);
}

bool rig_watch_any(void)
{
    return this_cpu_read(cpu_dr7) & 0xff;
}

/* ---- What an instruction does to memory ---- */

static bool is_alu_store(u8 opcode)
{
    return opcode < 0x38 && (opcode & 7) < 2; /* add, or, adc, sbb, and, sub, xor to memory */
}

static bool writes_short(u8 opcode, u8 reg)
{
    switch (opcode) {
    case 0x80:
    case 0x81:
    case 0x83:
        return reg != 7; /* cmp */
    case 0x86 ... 0x89:
    case 0x8f:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xd0 ... 0xd3:
        return true;
    case 0xf6:
    case 0xf7:
        return reg == 2 || reg == 3;
    case 0xfe:
    case 0xff:
        return reg < 2;
    default:
        return is_alu_store(opcode);
    }
}

static bool writes_long(u8 opcode)
{
    switch (opcode) {
    case 0x11:
    case 0x13:
    case 0x17:
    case 0x29:
    case 0x2b:
    case 0x7e:
    case 0x7f:
    case 0x90 ... 0x9f:
    case 0xab:
    case 0xb0:
    case 0xb1:
    case 0xb3:
    case 0xbb:
    case 0xc0:
    case 0xc1:
    case 0xc7:
    case 0xd6:
    case 0xe7:
        return true;
    default:
        return false;
    }
}

static bool is_byte(u8 opcode)
{
    return opcode < 0x40 ? !(opcode & 1)
                         : opcode == 0x80 || opcode == 0x84 || opcode == 0x86 || opcode == 0x88 || opcode == 0x8a ||
                               opcode == 0xc0 || opcode == 0xc6 || opcode == 0xd0 || opcode == 0xd2 || opcode == 0xf6 ||
                               opcode == 0xfe;
}

struct access {
    u64 start, end;
    bool writes;
};

static bool read_modrm(struct insn *insn, struct pt_regs *regs, struct access *access)
{
    bool is_long = insn->opcode.bytes[0] == 0x0f;
    u8 opcode = insn->opcode.bytes[is_long ? 1 : 0];
    unsigned size = insn->opnd_bytes;

    if (!insn->modrm.nbytes || X86_MODRM_MOD(insn->modrm.bytes[0]) == 3 || (!is_long && opcode == 0x8d) ||
        (is_long && (opcode == 0x1f || opcode == 0x18 || opcode == 0x0d)))
        return false;
    if (is_long && (opcode == 0xb6 || opcode == 0xbe || (opcode & 0xf0) == 0x90))
        size = 1;
    else if (is_long && (opcode == 0xb7 || opcode == 0xbf))
        size = 2;
    else if (is_long && (opcode < 0x80 || opcode >= 0xd0) && (opcode & 0xf0) != 0x40)
        size = 16;
    else if (!is_long && is_byte(opcode))
        size = 1;
    access->start = (u64)address_of(insn, regs);
    access->end = access->start + size;
    access->writes = is_long ? writes_long(opcode) : writes_short(opcode, X86_MODRM_REG(insn->modrm.bytes[0]));
    return access->start != (u64)-1;
}

static bool read_access(struct pt_regs *regs, struct access *access)
{
    u8 bytes[MAX_INSN_SIZE] = {0}, opcode;
    struct insn insn;

    if (copy_from_user_nofault(bytes, (const void __user *)regs->ip, sizeof(bytes)) ||
        decode(&insn, bytes, sizeof(bytes), INSN_MODE_64) < 0)
        return false;
    opcode = insn.opcode.bytes[0];
    if (opcode == 0xaa || opcode == 0xab || opcode == 0xa4 || opcode == 0xa5) {
        *access = (struct access){regs->di, regs->di + (opcode & 1 ? insn.opnd_bytes : 1), true};
        return true;
    }
    return read_modrm(&insn, regs, access);
}

/* ---- Hits ---- */

static u64 debug_address(int slot)
{
    unsigned long address = 0;

    switch (slot) {
    case 0:
        get_debugreg(address, 0);
        break;
    case 1:
        get_debugreg(address, 1);
        break;
    case 2:
        get_debugreg(address, 2);
        break;
    default:
        get_debugreg(address, 3);
        break;
    }
    return address;
}

static bool is_hit(int slot, const struct access *access, u64 ip)
{
    static const u8 lengths[] = {1, 2, 8, 4};
    unsigned long dr7 = this_cpu_read(cpu_dr7);
    unsigned kind = dr7 >> (16 + 4 * slot) & 3;
    u64 at, size = lengths[dr7 >> (18 + 4 * slot) & 3];

    if (!(dr7 >> 2 * slot & 3))
        return false;
    at = debug_address(slot);
    if (kind == ON_EXECUTE)
        return at == ip;
    return access && (kind != ON_WRITE || access->writes) && access->start < at + size && at < access->end;
}

void rig_watch_step(struct pt_regs *before, struct pt_regs *after)
{
    struct access access;
    bool accesses = read_access(before, &access);
    unsigned long dr6 = 0;
    struct die_args args = {.regs = after};

    for (int i = 0; i < SLOTS; i++)
        if (is_hit(i, accesses ? &access : NULL, after->ip))
            dr6 |= DR_TRAP0 << i;
    if (!dr6)
        return;
    args.err = (long)&dr6;
    fire(NULL, DIE_DEBUG, &args);
    rig_watch_silence();
}

/* ---- Setting of watches while a CPU steps ---- */

static int on_changed(struct kretprobe_instance *instance, struct pt_regs *regs)
{
    if (rig_steps_any())
        rig_watch_silence();
    return 0;
}

static struct kretprobe changes[] = {
    {.kp.symbol_name = "arch_install_hw_breakpoint", .handler = on_changed, .maxactive = 16},
    {.kp.symbol_name = "arch_uninstall_hw_breakpoint", .handler = on_changed, .maxactive = 16},
};

/* The kernel exports none of these. */
static int find_functions(void)
{
    struct kprobe probe = {.symbol_name = "kallsyms_lookup_name"};
    int error = register_kprobe(&probe);

    if (error)
        return error;
    lookup = (void *)probe.addr;
    unregister_kprobe(&probe);
    decode = (void *)lookup("insn_decode");
    address_of = (void *)lookup("insn_get_addr_ref");
    fire = (void *)lookup("hw_breakpoint_exceptions_notify");
    return decode && address_of && fire ? 0 : -ENOENT;
}

int rig_watch_register(void)
{
    int error = find_functions();

    for (size_t i = 0; i < ARRAY_SIZE(changes) && !error; i++) {
        error = register_kretprobe(&changes[i]);
        if (error && i)
            unregister_kretprobe(&changes[0]);
    }
    return error;
}

void rig_watch_unregister(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
        unregister_kretprobe(&changes[i]);
}
