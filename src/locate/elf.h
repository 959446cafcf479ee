/* What heddle needs to know of an ELF file: for which machine it was built, and how it is loaded.
 * Only 64-bit little-endian files are read completely. Not a linker. It trusts nothing: every
 * offset is checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_ELF_NAME_MAX 256
#define HED_ELF_NEEDED_MAX (4 * 1024)

struct hed_elf {
    bool is_elf;
    bool is_script;   /* begins with #! */
    bool is_64;       /* 64-bit little-endian; what follows is filled in for these only */
    uint16_t machine; /* EM_... (filled in for every ELF file) */
    bool has_interp;  /* asks for a dynamic loader, so LD_PRELOAD has an effect */
    char soname[HED_ELF_NAME_MAX];   /* or "" */
    char needed[HED_ELF_NEEDED_MAX]; /* the DT_NEEDED names, each with a blank on both sides */
};

/* 0, or a negative HED_E... when the file cannot be read. A file that is not ELF is no error. */
int hed_elf_read(const char *path, struct hed_elf *out);

/* The same for a file in memory. */
void hed_elf_read_in(const void *data, size_t size, struct hed_elf *out);

/* Can this process (or one like it) load the file as far as class and machine go? */
bool hed_elf_is_native(const struct hed_elf *e);

/* "x86-64", "aarch64", ... for people. */
const char *hed_elf_machine_name(uint16_t machine);

/* Is it one of heddle's own fronts, whatever its name? */
bool hed_elf_is_heddle(const struct hed_elf *e);
