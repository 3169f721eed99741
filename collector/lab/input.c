/* SPDX-License-Identifier: MIT */
/* Input of the program: answers from outside the process are kept in a journal, and given back when the run is
 * repeated. So a repeated run needs no server, no other process and no terminal. Regular files and pipes inside the
 * process are not input: the program uses them again. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DESCRIPTORS 65536
#define INNER 1024 /* pipes and pairs of sockets that the program made for itself */

static uint8_t outside[DESCRIPTORS];
static struct {
    dev_t device;
    ino_t file;
} inner[INNER];
static uint32_t n_inner;
static bool is_shared; /* another process has its descriptors too */
static uint64_t cursor[ETCH_LAB_THREADS + 1];

/* ---- The journal ---- */

void lab_input_begin(void)
{
    memcpy(cursor, lab->feed_first, sizeof(cursor));
}

/* Copies `size` bytes out of the parts, one behind the other. */
static void gather(uint8_t *to, const struct iovec *parts, int n, size_t size)
{
    for (int i = 0; i < n && size; i++) {
        size_t here = parts[i].iov_len < size ? parts[i].iov_len : size;

        memcpy(to, parts[i].iov_base, here);
        to += here;
        size -= here;
    }
}

static size_t size_of(const struct iovec *parts, int n)
{
    size_t size = 0;

    for (int i = 0; i < n; i++)
        size += parts[i].iov_len;
    return size;
}

static void keep(struct etch_lab_answer answer, const struct iovec *parts, int n, size_t size)
{
    size_t whole = sizeof(answer) + ((size + 7) & ~(size_t)7);
    uint8_t *to = (uint8_t *)lab->journal + lab->journal_size;

    if (size > UINT32_MAX || whole > sizeof(lab->journal) - lab->journal_size || lab->journal_lost) {
        lab->journal_lost++;
        return;
    }
    answer.size = (uint32_t)size;
    memcpy(to, &answer, sizeof(answer));
    gather(to + sizeof(answer), parts, n, size);
    lab->journal_size += whole;
    lab->answers++;
}

void lab_input_keep_for(uint32_t thread, enum etch_lab_call call, int fd, int64_t result)
{
    keep((struct etch_lab_answer){.thread = thread, .call = (uint16_t)call, .result = result, .fd = fd}, NULL, 0, 0);
}

int64_t lab_input_keep(enum etch_lab_call call, int fd, int64_t result, const struct iovec *parts, int n, size_t size)
{
    size_t all = size_of(parts, n);

    keep(
        (struct etch_lab_answer){
            .thread = lab_me, .call = (uint16_t)call, .error = (uint16_t)errno, .result = result, .fd = fd},
        parts, n, size < all ? size : all);
    return result;
}

static const struct etch_lab_answer *peek(uint32_t thread)
{
    uint64_t at = cursor[thread];

    return at && at - 1 <= lab->feed_size - sizeof(struct etch_lab_answer)
               ? (const struct etch_lab_answer *)((const uint8_t *)lab->feed + at - 1)
               : NULL;
}

static void misfit(uint32_t thread, enum etch_lab_misfit why, enum etch_lab_call call, int fd,
                   const struct etch_lab_answer *kept)
{
    lab->misfit_call = call;
    lab->misfit_fd = fd;
    lab->misfit_answer = kept ? kept->call : 0;
    lab_misfit(thread, why);
}

const struct etch_lab_answer *lab_input_take_for(uint32_t thread, enum etch_lab_call call, int fd)
{
    const struct etch_lab_answer *a = peek(thread);

    if (!a)
        misfit(thread, ETCH_LAB_NO_ANSWER, call, fd, NULL);
    else if (a->call != call || a->fd != fd)
        misfit(thread, ETCH_LAB_OTHER_CALL, call, fd, a);
    cursor[thread] = a->next;
    errno = a->error;
    return a;
}

int64_t lab_input_take(enum etch_lab_call call, int fd, const struct iovec *parts, int n)
{
    const struct etch_lab_answer *a = lab_input_take_for(lab_me, call, fd);
    const uint8_t *from = (const uint8_t *)(a + 1);
    size_t size = a->size;

    if (size > size_of(parts, n))
        misfit(lab_me, ETCH_LAB_WRONG_SIZE, call, fd, a);
    for (int i = 0; i < n && size; i++) {
        size_t here = parts[i].iov_len < size ? parts[i].iov_len : size;

        memcpy(parts[i].iov_base, from, here);
        from += here;
        size -= here;
    }
    return a->result;
}

bool lab_input_feeds(void)
{
    return lab->feeds;
}

enum lab_way lab_input_way(int fd)
{
    return !lab_input_is_outside(fd) ? LAB_ASK : lab->feeds ? LAB_GIVE : LAB_KEEP;
}

enum lab_way lab_input_way_of(uint32_t source)
{
    return !lab_input_is(source) ? LAB_ASK : lab->feeds ? LAB_GIVE : LAB_KEEP;
}

/* ---- Virtual time ---- */

void lab_input_jumped(void)
{
    if (!lab->feeds)
        lab_input_keep_for(ETCH_LAB_THREADS, ETCH_LAB_CALL_JUMP, (int)(uint32_t)lab->points, (int64_t)lab->virtual_ns);
}

void lab_input_jump(void)
{
    const struct etch_lab_answer *a;

    while (lab->feeds && (a = peek(ETCH_LAB_THREADS)) && (uint32_t)a->fd == (uint32_t)lab->points) {
        if ((uint64_t)a->result > lab->virtual_ns)
            lab->virtual_ns = (uint64_t)a->result;
        cursor[ETCH_LAB_THREADS] = a->next;
    }
}

/* ---- What is outside ---- */

static bool is_inner(const struct stat *st)
{
    for (uint32_t i = 0; i < n_inner; i++)
        if (inner[i].device == st->st_dev && inner[i].file == st->st_ino)
            return true;
    return false;
}

void lab_input_made_inner(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && n_inner < INNER) {
        inner[n_inner].device = st.st_dev;
        inner[n_inner++].file = st.st_ino;
    }
}

void lab_input_shared_inner(void)
{
    n_inner = 0;
    is_shared = true;
}

bool lab_input_is_inner(int fd)
{
    static const char name[] = "anon_inode:[eventfd]";
    char path[64], kind[sizeof(name)];
    int error = errno;
    struct stat st;
    ssize_t n;
    bool is;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = readlink(path, kind, sizeof(kind) - 1);
    is = (fstat(fd, &st) == 0 && is_inner(&st)) ||
         (!is_shared && n == sizeof(name) - 1 && !memcmp(kind, name, (size_t)n));
    errno = error;
    return is;
}

static uint32_t source_of(int fd)
{
    struct stat st;

    if (fd == 1 || fd == 2 || fstat(fd, &st) < 0) /* output is shown again */
        return 0;
    if (S_ISFIFO(st.st_mode))
        return is_inner(&st) ? 0 : ETCH_LAB_PIPES;
    if (S_ISSOCK(st.st_mode))
        return is_inner(&st) ? 0 : ETCH_LAB_SOCKETS;
    if (!S_ISCHR(st.st_mode))
        return 0;
    if (major(st.st_rdev) == 1) /* memory devices: null and zero give the same each time */
        return minor(st.st_rdev) == 8 || minor(st.st_rdev) == 9 ? ETCH_LAB_RANDOM_NUMBERS : 0;
    return isatty(fd) ? ETCH_LAB_TERMINALS : ETCH_LAB_DEVICES;
}

bool lab_input_is(uint32_t source)
{
    return lab_controlled() && lab->sources & source;
}

void lab_input_set_outside(int fd, bool is)
{
    if (fd >= 0 && fd < DESCRIPTORS && outside[fd] != is) {
        outside[fd] = is;
        if (!lab->feeds)
            lab_input_keep_for(lab_me, ETCH_LAB_CALL_CLASS, fd, is);
    }
}

bool lab_input_was_outside(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && outside[fd];
}

/* The class of a descriptor is kept when it changes: a repeated run has other files behind its descriptors. */
bool lab_input_is_outside(int fd)
{
    const struct etch_lab_answer *a;
    int error = errno;

    if (!lab_controlled() || fd < 0 || fd >= DESCRIPTORS)
        return false;
    if (!lab->feeds) {
        lab_input_set_outside(fd, (source_of(fd) & lab->sources) || lab_input_is_watched(fd));
        errno = error;
        return outside[fd];
    }
    while ((a = peek(lab_me)) && a->call == ETCH_LAB_CALL_CLASS && a->fd == fd) {
        outside[fd] = a->result != 0;
        cursor[lab_me] = a->next;
    }
    return outside[fd];
}

/* ---- Places of descriptors ---- */

int lab_input_place(int made, int64_t wanted)
{
    if (made == (int)wanted || wanted < 0) {
        if (wanted < 0 && made >= 0)
            close(made);
        return (int)wanted;
    }
    if (fcntl((int)wanted, F_GETFD) >= 0)
        misfit(lab_me, ETCH_LAB_DESCRIPTOR_TAKEN, ETCH_LAB_CALL_SOCKET, (int)wanted, NULL);
    if (made >= 0 && dup2(made, (int)wanted) == (int)wanted)
        close(made);
    return (int)wanted;
}
