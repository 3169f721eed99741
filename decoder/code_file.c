/* SPDX-License-Identifier: MIT */
/* See code_file.h. */
#include "decoder/code_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A note segment: name size, description size, type, then both padded to four bytes. */
static const uint8_t *find_note(const uint8_t *p, size_t size, size_t *id_size)
{
    while (size >= 12) {
        uint32_t head[3];
        uint64_t name, desc;

        memcpy(head, p, sizeof(head));
        name = ((uint64_t)head[0] + 3) & ~(uint64_t)3;
        desc = ((uint64_t)head[1] + 3) & ~(uint64_t)3;
        if (12 + name + head[1] > size)
            return NULL;
        if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && memcmp(p + 12, "GNU", 4) == 0 && head[1] > 0) {
            *id_size = head[1];
            return p + 12 + name;
        }
        if (12 + name + desc > size)
            return NULL;
        p += 12 + name + desc;
        size -= (size_t)(12 + name + desc);
    }
    return NULL;
}

static const uint8_t *find_id_64(const uint8_t *bytes, size_t size, size_t *id_size)
{
    Elf64_Ehdr ehdr;

    if (size < sizeof(ehdr))
        return NULL;
    memcpy(&ehdr, bytes, sizeof(ehdr));
    for (size_t i = 0; i < ehdr.e_phnum; i++) {
        uint64_t at = ehdr.e_phoff + i * sizeof(Elf64_Phdr);
        const uint8_t *id;
        Elf64_Phdr phdr;

        if (at < ehdr.e_phoff || at > size || size - at < sizeof(phdr))
            return NULL;
        memcpy(&phdr, bytes + at, sizeof(phdr));
        if (phdr.p_type != PT_NOTE || phdr.p_offset > size || phdr.p_filesz > size - phdr.p_offset)
            continue;
        id = find_note(bytes + phdr.p_offset, (size_t)phdr.p_filesz, id_size);
        if (id)
            return id;
    }
    return NULL;
}

static const uint8_t *find_id_32(const uint8_t *bytes, size_t size, size_t *id_size)
{
    Elf32_Ehdr ehdr;

    if (size < sizeof(ehdr))
        return NULL;
    memcpy(&ehdr, bytes, sizeof(ehdr));
    for (size_t i = 0; i < ehdr.e_phnum; i++) {
        uint64_t at = (uint64_t)ehdr.e_phoff + i * sizeof(Elf32_Phdr);
        const uint8_t *id;
        Elf32_Phdr phdr;

        if (at > size || size - at < sizeof(phdr))
            return NULL;
        memcpy(&phdr, bytes + at, sizeof(phdr));
        if (phdr.p_type != PT_NOTE || phdr.p_offset > size || phdr.p_filesz > size - phdr.p_offset)
            continue;
        id = find_note(bytes + phdr.p_offset, phdr.p_filesz, id_size);
        if (id)
            return id;
    }
    return NULL;
}

const uint8_t *etch_elf_build_id(const uint8_t *bytes, size_t size, size_t *id_size)
{
    if (size < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return NULL;
    return bytes[EI_CLASS] == ELFCLASS64 ? find_id_64(bytes, size, id_size) : find_id_32(bytes, size, id_size);
}

bool etch_code_file_open(struct etch_code_file *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    void *bytes;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        close(fd);
        return false;
    }
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct etch_code_file){strdup(path), bytes, (size_t)st.st_size, NULL, 0};
    if (!file->path) {
        etch_code_file_close(file);
        return false;
    }
    file->build_id = etch_elf_build_id(file->bytes, file->size, &file->build_id_size);
    return true;
}

void etch_code_file_close(struct etch_code_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    free(file->path);
}
