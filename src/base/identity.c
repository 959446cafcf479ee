/* A number for what is in an executable or a library. See identity.h. */
#include "base/identity.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define HEADERS_MAX 64   /* of a program that are looked at */
#define NOTES_MAX 4096   /* bytes of notes likewise */
#define BUILD_ID_LEAST 8 /* bytes: shorter ones name nothing */

static bool
read_at(int fd, uint64_t at, void *out, size_t n)
{
    return at <= INT64_MAX && pread(fd, out, n, (off_t)at) == (ssize_t)n;
}

static uint64_t
number_of_hash(struct hed_hash *h)
{
    uint8_t hash[HED_HASH_SIZE];
    uint64_t n;

    hed_hash_end(h, hash);
    memcpy(&n, hash, sizeof n);
    return n ? n : 1;
}

/* Looks for the build id in a piece of notes. */
static uint64_t
build_id_in(const unsigned char *notes, size_t size)
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr n;

        memcpy(&n, notes + at, sizeof n);
        at += sizeof n;

        const uint64_t name = ((uint64_t)n.n_namesz + 3) & ~UINT64_C(3);
        const uint64_t bytes = ((uint64_t)n.n_descsz + 3) & ~UINT64_C(3);

        if (name + bytes > size - at)
            break;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
            n.n_descsz >= BUILD_ID_LEAST) {
            struct hed_hash h;

            hed_hash_init(&h);
            hed_hash_add(&h, notes + at + name, n.n_descsz);
            return number_of_hash(&h);
        }
        at += (size_t)(name + bytes);
    }
    return 0;
}

static uint64_t
build_identity(int fd)
{
    unsigned char notes[NOTES_MAX];
    Elf64_Ehdr e;
    uint64_t found = 0;

    if (!read_at(fd, 0, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    for (unsigned i = 0; !found && i < e.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr p;

        if (!read_at(fd, e.e_phoff + i * sizeof p, &p, sizeof p))
            break;
        if (p.p_type == PT_NOTE && p.p_filesz <= sizeof notes &&
            read_at(fd, p.p_offset, notes, (size_t)p.p_filesz))
            found = build_id_in(notes, (size_t)p.p_filesz);
    }
    return found;
}

static uint64_t
content_identity(int fd)
{
    unsigned char piece[16384];
    struct hed_hash h;
    ssize_t n;

    hed_hash_init(&h);
    for (off_t at = 0; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        hed_hash_add(&h, piece, (size_t)n);
    return n < 0 ? 0 : number_of_hash(&h);
}

uint64_t
hed_file_identity(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t identity;

    if (fd < 0)
        return 0;
    identity = build_identity(fd);
    if (!identity)
        identity = content_identity(fd);
    (void)close(fd);
    return identity;
}
