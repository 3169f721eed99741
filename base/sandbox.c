/* SPDX-License-Identifier: MIT */
/* See sandbox.h. By the system calls themselves: the headers of an old system do not know Landlock. */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1 /* which looks for leaks by ptrace, and runs a symbolizer */
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* ---- Landlock ---- */

enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT = 446 };

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE = 1 << 1,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_MAKE_FIFO = 1 << 10,
    FS_MAKE_BLOCK = 1 << 11,
    FS_MAKE_SYM = 1 << 12,
    FS_REFER = 1 << 13,    /* version 2 */
    FS_TRUNCATE = 1 << 14, /* version 3 */
};

struct ruleset {
    uint64_t fs, net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

static int landlock_version(void)
{
    long version = syscall(LANDLOCK_CREATE, NULL, 0, 1);

    return version > 0 ? (int)version : 0;
}

static uint64_t handled(int version)
{
    uint64_t fs = FS_EXECUTE | FS_WRITE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_CHAR | FS_MAKE_DIR | FS_MAKE_REG |
                  FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_BLOCK | FS_MAKE_SYM;

    fs |= version >= 2 ? FS_REFER : 0;
    fs |= version >= 3 ? FS_TRUNCATE : 0;
    return SANITIZED ? fs & ~(uint64_t)FS_EXECUTE : fs;
}

static void allow(int rules, int version, const char *path, uint64_t what)
{
    struct path_rule rule = {.allowed = what & handled(version), .folder = open(path, O_PATH | O_CLOEXEC)};

    if (rule.folder < 0)
        return;
    syscall(LANDLOCK_ADD_RULE, rules, 1, &rule, 0);
    close(rule.folder);
}

static void allow_folder(int rules, int version, const char *folder)
{
    allow(rules, version, folder,
          FS_WRITE | FS_TRUNCATE | FS_MAKE_REG | FS_MAKE_DIR | FS_MAKE_SYM | FS_REMOVE_FILE | FS_REMOVE_DIR | FS_REFER);
}

/* A file is written over or made beside where it is to be; what is no file, a device say, only written to. */
static void allow_output(int rules, int version, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        allow(rules, version, path, FS_WRITE | FS_TRUNCATE);
        return;
    }
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    allow_folder(rules, version, folder[0] ? folder : "/");
}

static bool enter_landlock(int version, const char *const *outputs, size_t n)
{
    struct ruleset set = {handled(version), version >= 4 ? 3 : 0, version >= 6 ? 3 : 0};
    const char *temporary = getenv("TMPDIR");
    int rules = (int)syscall(LANDLOCK_CREATE, &set, sizeof(set), 0);
    bool entered;

    if (rules < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        allow_output(rules, version, outputs[i]);
    if (temporary && *temporary)
        allow_folder(rules, version, temporary);
    allow_folder(rules, version, "/tmp");
    allow_folder(rules, version, "/var/tmp");
    allow(rules, version, "/dev/null", FS_WRITE | FS_TRUNCATE);
    allow(rules, version, "/dev/tty", FS_WRITE | FS_TRUNCATE);
    entered = syscall(LANDLOCK_RESTRICT, rules, 0) == 0;
    close(rules);
    return entered;
}

/* ---- Seccomp ---- */

#ifdef __x86_64__
/* System calls that no reader needs. tgkill stays allowed: abort() uses it. clone stays allowed: threads need it. */
static const unsigned forbidden[] = {
    SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_process_vm_readv, SYS_socket, SYS_socketpair,
    SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_bpf, SYS_perf_event_open, SYS_process_vm_writev,
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_userfaultfd, SYS_kcmp, SYS_keyctl,
    SYS_add_key, SYS_request_key, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
    SYS_setgroups, SYS_capset, SYS_iopl, SYS_ioperm, SYS_settimeofday, SYS_clock_settime, SYS_sethostname,
    SYS_setdomainname, SYS_acct, SYS_quotactl, SYS_open_by_handle_at, 424 /* pidfd_send_signal */,
    425 /* io_uring_setup */, 428 /* open_tree */, 429 /* move_mount */, 434 /* pidfd_open */, 438 /* pidfd_getfd */,
    /* The last three are what the sanitizers need. */
    SYS_execve, SYS_execveat, SYS_ptrace};

#define N_FORBIDDEN (sizeof(forbidden) / sizeof(forbidden[0]) - (SANITIZED ? 3 : 0))

static struct sock_filter statement(uint16_t code, uint32_t k)
{
    return (struct sock_filter){.code = code, .k = k};
}

static struct sock_filter branch(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    return (struct sock_filter){.code = code, .k = k, .jt = yes, .jf = no};
}

/* Another architecture's calls have other numbers: all of them are refused. */
static bool enter_seccomp(void)
{
    struct sock_filter code[N_FORBIDDEN + 8];
    struct sock_fprog program = {.filter = code};
    unsigned short n = 0;

    code[n++] = statement(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = branch(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    code[n++] = statement(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = branch(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, (uint8_t)(N_FORBIDDEN + 1), 0); /* x32 */
    for (size_t i = 0; i < N_FORBIDDEN; i++)
        code[n++] = branch(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], (uint8_t)(N_FORBIDDEN - i), 0);
    code[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    program.len = n;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool has_seccomp(void)
{
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT;
}
#else
static bool enter_seccomp(void)
{
    return false;
}

static bool has_seccomp(void)
{
    return false;
}
#endif

void etch_sandbox_probe(struct etch_sandbox *sandbox)
{
    sandbox->landlock = landlock_version();
    sandbox->seccomp = has_seccomp();
}

void etch_sandbox_enter(struct etch_sandbox *sandbox, const char *const *outputs, size_t n)
{
    etch_sandbox_probe(sandbox);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        *sandbox = (struct etch_sandbox){0};
        return;
    }
    if (sandbox->landlock && !enter_landlock(sandbox->landlock, outputs, n))
        sandbox->landlock = 0;
    sandbox->seccomp = sandbox->seccomp && enter_seccomp();
}
