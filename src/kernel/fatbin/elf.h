/* The sections and symbols of 64-bit little-endian ELF files: host programs that contain fat
 * binaries, and cubins. Every offset is checked; nothing is copied. (The room locate has its own
 * reader, which reads what the loader reads.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/fatbin/bytes.h"

struct hed_why;

#define HED_ELF_CUDA 190 /* e_machine of a cubin */

struct hed_elf_file {
    struct hed_bytes bytes;
    uint16_t type;    /* ET_... */
    uint16_t machine; /* EM_... */
    uint32_t flags;   /* e_flags */
    uint8_t osabi;
    uint64_t headers; /* offset of the section headers */
    uint32_t count;   /* of sections; all their headers are in the file */
    struct hed_bytes names;
};

struct hed_elf_section {
    struct hed_bytes name;
    uint32_t type;          /* SHT_... */
    uint32_t link;          /* sh_link */
    uint32_t info;          /* sh_info */
    uint64_t size;          /* also if the section has no bytes in the file */
    uint64_t start;         /* offset in the file */
    struct hed_bytes bytes; /* empty if the section has no bytes in the file */
};

struct hed_elf_symbol {
    struct hed_bytes name;
    uint8_t info; /* st_info */
    uint8_t other;
    uint16_t section;
    uint64_t value;
    uint64_t size;
};

bool hed_elf_file_begins(struct hed_bytes b);

/* HED_EFORMAT, HED_ETRUNC, or HED_ENOTSUP for 32-bit and big-endian files. */
int hed_elf_file_read(struct hed_bytes b, struct hed_elf_file *out, struct hed_why *why);

/* False if there is no such section, or its bytes are not all in the file. */
bool hed_elf_file_section(const struct hed_elf_file *o, uint32_t i, struct hed_elf_section *out);

/* The symbols in a symbol table; symbol 0 is none. */
uint32_t hed_elf_file_symbols(const struct hed_elf_section *table);
bool hed_elf_file_symbol(const struct hed_elf_section *table, const struct hed_elf_section *strings,
                         uint32_t i, struct hed_elf_symbol *out);

/* Is that the section's name, or does the name begin with it? */
bool hed_elf_section_is(const struct hed_elf_section *s, const char *name);
bool hed_elf_section_begins(const struct hed_elf_section *s, const char *prefix);
