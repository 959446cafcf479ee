/* Cubins for sm_80 that a test makes itself, as no compiler would: sections, symbols, code. */
#pragma once

#include <elf.h>

#include "base/buf.h"
#include "base/err.h"
#include "harness/unit.h"
#include "kernel/fatbin/elf.h"

#define MAKE_SECTIONS 16
#define MAKE_CEILING ((size_t)64 << 20)
#define MAKE_KERNEL 0x10 /* in st_other */

struct make_cubin {
    struct hed_buf bytes, names, strings, symbols;
    Elf64_Shdr sections[MAKE_SECTIONS];
    unsigned section_count;
};

static inline uint32_t
make_name(struct hed_buf *in, const char *name)
{
    const uint32_t at = (uint32_t)in->size;

    hed_buf_add(in, name, strlen(name) + 1);
    return at;
}

static inline void
make_cubin_begin(struct make_cubin *m)
{
    const Elf64_Sym none = {0};
    const Elf64_Ehdr head = {0};

    memset(m, 0, sizeof *m);
    hed_buf_init(&m->bytes, MAKE_CEILING);
    hed_buf_init(&m->names, MAKE_CEILING);
    hed_buf_init(&m->strings, MAKE_CEILING);
    hed_buf_init(&m->symbols, MAKE_CEILING);
    hed_buf_add(&m->bytes, &head, sizeof head);
    (void)make_name(&m->names, "");
    (void)make_name(&m->strings, "");
    hed_buf_add(&m->symbols, &none, sizeof none);
    m->section_count = 1;
}

/* Returns its number. data is NULL for a section without bytes. */
static inline uint32_t
make_section(struct make_cubin *m, const char *name, uint32_t type, uint32_t info, const void *data,
             uint64_t size)
{
    assert_true(m->section_count < MAKE_SECTIONS);
    m->sections[m->section_count] = (Elf64_Shdr){.sh_name = make_name(&m->names, name),
                                                 .sh_type = type,
                                                 .sh_info = info,
                                                 .sh_offset = m->bytes.size,
                                                 .sh_size = size};
    if (data)
        hed_buf_add(&m->bytes, data, (size_t)size);
    return m->section_count++;
}

static inline uint32_t
make_symbol(struct make_cubin *m, const char *name, Elf64_Sym s)
{
    s.st_name = make_name(&m->strings, name);
    hed_buf_add(&m->symbols, &s, sizeof s);
    return (uint32_t)(m->symbols.size / sizeof s) - 1;
}

/* The code of a kernel, and its records. */
static inline uint32_t
make_kernel(struct make_cubin *m, const char *name, const struct hed_buf *code,
            const struct hed_buf *info)
{
    char section[256];
    uint32_t text;

    (void)snprintf(section, sizeof section, ".text.%s", name);
    text = make_section(m, section, SHT_PROGBITS, 0, code->data, code->size);
    if (info) {
        (void)snprintf(section, sizeof section, ".nv.info.%s", name);
        (void)make_section(m, section, 0x70000000, text, info->data, info->size);
    }
    (void)make_symbol(m, name,
                      (Elf64_Sym){.st_info = STT_FUNC,
                                  .st_other = MAKE_KERNEL,
                                  .st_shndx = (uint16_t)text,
                                  .st_size = code->size});
    return text;
}

/* The file; valid until make_cubin_fini. */
static inline struct hed_bytes
make_cubin_end(struct make_cubin *m)
{
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_EXEC,
                       .e_machine = HED_ELF_CUDA,
                       .e_flags = 80,
                       .e_ehsize = sizeof head,
                       .e_shentsize = sizeof(Elf64_Shdr)};
    const uint32_t strings =
        make_section(m, ".strtab", SHT_STRTAB, 0, m->strings.data, m->strings.size);
    const uint32_t symbols =
        make_section(m, ".symtab", SHT_SYMTAB, 0, m->symbols.data, m->symbols.size);

    m->sections[symbols].sh_link = strings;
    head.e_shstrndx = (uint16_t)make_section(m, ".shstrtab", SHT_STRTAB, 0, NULL, 0);
    m->sections[head.e_shstrndx].sh_size = m->names.size; /* with its own name */
    hed_buf_add(&m->bytes, m->names.data, m->names.size);
    head.e_shnum = (uint16_t)m->section_count;
    head.e_shoff = m->bytes.size;
    hed_buf_add(&m->bytes, m->sections, m->section_count * sizeof m->sections[0]);
    assert_int_equal(m->bytes.err, 0);
    memcpy(m->bytes.data, &head, sizeof head);
    return (struct hed_bytes){m->bytes.data, m->bytes.size};
}

static inline void
make_cubin_fini(struct make_cubin *m)
{
    hed_buf_fini(&m->bytes);
    hed_buf_fini(&m->names);
    hed_buf_fini(&m->strings);
    hed_buf_fini(&m->symbols);
}

/* ---- code ------------------------------------------------------------------------------------ */

#define GUARD_P0 0u
#define GUARD_NONE 7u

static inline void
make_inst(struct hed_buf *code, uint64_t low, uint64_t high)
{
    hed_buf_add(code, &low, sizeof low);
    hed_buf_add(code, &high, sizeof high);
}

static inline uint32_t
make_here(const struct hed_buf *code)
{
    return (uint32_t)(code->size / 16);
}

/* An instruction that goes to another one, by its number. */
static inline void
make_transfer(struct hed_buf *code, uint64_t opcode, unsigned guard, uint32_t to)
{
    const uint64_t by = (uint64_t)(((int64_t)to - (int64_t)make_here(code) - 1) * 16);

    make_inst(code, opcode | (uint64_t)guard << 12 | by << 32,
              0x000fc00003800000 | (by >> 32 & 0x3ffff));
}

static inline void
make_bra(struct hed_buf *code, unsigned guard, uint32_t to)
{
    make_transfer(code, 0x947, guard, to);
}

static inline void
make_call(struct hed_buf *code, uint32_t to)
{
    make_transfer(code, 0x944, GUARD_NONE, to);
}

/* RET.REL.NODEC R2; the number it is relative to stays 0. */
static inline void
make_ret(struct hed_buf *code)
{
    make_transfer(code, 0x950 | 2 << 24, GUARD_NONE, 0);
}

static inline void
make_brx(struct hed_buf *code)
{
    make_inst(code, 0x7949 | 2 << 24, 0x000fc00003800000);
}

static inline void
make_nop(struct hed_buf *code)
{
    make_inst(code, 0x7918, 0x000fc00000000000);
}

static inline void
make_exit(struct hed_buf *code)
{
    make_inst(code, 0x794d, 0x000fea0003800000);
}

/* A record of .nv.info with bytes. */
static inline void
make_record(struct hed_buf *info, uint8_t attribute, const void *data, uint16_t size)
{
    const uint8_t head[4] = {4, attribute, (uint8_t)size, (uint8_t)(size >> 8)};

    hed_buf_add(info, head, sizeof head);
    hed_buf_add(info, data, size);
}

static inline void
make_param(struct hed_buf *info, uint16_t ordinal, uint16_t offset, uint32_t size)
{
    const uint32_t record[3] = {0, ordinal | (uint32_t)offset << 16, size << 18};

    make_record(info, 0x17, record, sizeof record);
}
