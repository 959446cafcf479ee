/* Reading the head, the segments and the dynamic section of an ELF file. See elf.h. */
#include "locate/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "base/str.h"

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define NATIVE_MACHINE EM_PPC64
#elif defined(__riscv)
#define NATIVE_MACHINE EM_RISCV
#else
#define NATIVE_MACHINE EM_NONE
#endif

/* A file in memory. */
struct image {
    const unsigned char *data;
    size_t size;
};

static bool
copy_out(const struct image *f, uint64_t offset, void *to, size_t n)
{
    if (!hed_range_fits(offset, n, f->size))
        return false;
    memcpy(to, f->data + offset, n);
    return true;
}

/* The string at an offset of the string table, or NULL if it does not end inside the file. */
static const char *
elf_string(const struct image *f, uint64_t table, uint64_t offset)
{
    if (table > f->size || offset >= f->size - table)
        return NULL;

    const char *s = (const char *)f->data + table + offset;

    return memchr(s, 0, f->size - table - offset) ? s : NULL;
}

static bool
segment_at(const struct image *f, const Elf64_Ehdr *head, size_t i, Elf64_Phdr *out)
{
    return head->e_phentsize == sizeof *out &&
           copy_out(f, head->e_phoff + i * sizeof *out, out, sizeof *out);
}

/* Where an address of the loaded program lies in the file; the file's size if nowhere. */
static uint64_t
file_offset(const struct image *f, const Elf64_Ehdr *head, uint64_t address)
{
    Elf64_Phdr p;

    for (size_t i = 0; i < head->e_phnum && segment_at(f, head, i, &p); i++) {
        if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return p.p_offset + (address - p.p_vaddr);
    }
    return f->size;
}

static void
add_needed(struct hed_elf *out, const char *name)
{
    const size_t used = strlen(out->needed);

    /* In plain steps, because the audit libraries have no snprintf. */
    if (used + strlen(name) + 3 < sizeof out->needed) {
        char *p = out->needed + used;

        if (used == 0)
            *p++ = ' ';
        memcpy(p, name, strlen(name));
        p[strlen(name)] = ' ';
        p[strlen(name) + 1] = '\0';
    }
}

static void
read_dynamic(const struct image *f, const Elf64_Ehdr *head, const Elf64_Phdr *segment,
             struct hed_elf *out)
{
    const size_t count = segment->p_filesz / sizeof(Elf64_Dyn);
    uint64_t table = UINT64_MAX; /* an address that no file has anything at */
    Elf64_Dyn d;

    /* Two passes: names can be looked up only when the string table is known. */
    for (size_t i = 0; i < count; i++) {
        if (!copy_out(f, segment->p_offset + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            break;
        if (d.d_tag == DT_STRTAB)
            table = d.d_un.d_ptr;
    }
    table = file_offset(f, head, table);
    for (size_t i = 0; i < count; i++) {
        if (!copy_out(f, segment->p_offset + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            break;

        const bool named = d.d_tag == DT_SONAME || d.d_tag == DT_NEEDED;
        const char *name = named ? elf_string(f, table, d.d_un.d_val) : NULL;

        if (name && d.d_tag == DT_SONAME)
            (void)hed_str_copy(out->soname, sizeof out->soname, name);
        else if (name)
            add_needed(out, name);
    }
}

/* Only the first dynamic section counts: a file with thousands of them would take hours. */
static void
read_elf(const struct image *f, struct hed_elf *out)
{
    bool has_dynamic = false;
    Elf64_Ehdr head;
    Elf64_Phdr p;

    out->is_script = f->size > 2 && memcmp(f->data, "#!", 2) == 0;
    /* The machine is at the same offset in 32-bit files. */
    if (f->size < sizeof(Elf32_Ehdr) || memcmp(f->data, ELFMAG, SELFMAG) != 0)
        return;
    out->is_elf = true;
    memcpy(&out->machine, f->data + offsetof(Elf64_Ehdr, e_machine), sizeof out->machine);
    if (f->data[EI_CLASS] != ELFCLASS64 || f->data[EI_DATA] != ELFDATA2LSB)
        return;
    if (!copy_out(f, 0, &head, sizeof head))
        return;
    out->is_64 = true;
    for (size_t i = 0; i < head.e_phnum && segment_at(f, &head, i, &p); i++) {
        if (p.p_type == PT_INTERP)
            out->has_interp = true;
        if (p.p_type == PT_DYNAMIC && !has_dynamic) {
            has_dynamic = true;
            read_dynamic(f, &head, &p, out);
        }
    }
}

void
hed_elf_read_in(const void *data, size_t size, struct hed_elf *out)
{
    memset(out, 0, sizeof *out);
    read_elf(&(struct image){data, size}, out);
}

int
hed_elf_read(const char *path, struct hed_elf *out)
{
    struct stat st;
    int err = 0;
    /* A FIFO or a device must not make us wait. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    memset(out, 0, sizeof *out);
    if (fd < 0)
        return hed_err_from_errno(errno);
    if (fstat(fd, &st) != 0)
        err = hed_err_from_errno(errno);
    else if (!S_ISREG(st.st_mode))
        err = HED_EINVAL;
    else if (st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (data == MAP_FAILED) {
            err = hed_err_from_errno(errno);
        } else {
            hed_elf_read_in(data, (size_t)st.st_size, out);
            munmap(data, (size_t)st.st_size);
        }
    }
    close(fd);
    return err;
}

bool
hed_elf_is_native(const struct hed_elf *e)
{
    return e->is_elf && e->is_64 && (NATIVE_MACHINE == EM_NONE || e->machine == NATIVE_MACHINE);
}

const char *
hed_elf_machine_name(uint16_t machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_386:
        return "32-bit x86";
    case EM_AARCH64:
        return "aarch64";
    case EM_ARM:
        return "32-bit ARM";
    case EM_PPC64:
        return "ppc64";
    case EM_RISCV:
        return "RISC-V";
    default:
        return "another machine";
    }
}

bool
hed_elf_is_heddle(const struct hed_elf *e)
{
    return strstr(e->needed, " libheddle.so") != NULL;
}
