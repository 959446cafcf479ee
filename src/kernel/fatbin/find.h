/* Finds GPU code in any file: a program, library or object file, a static archive of these, a fat
 * binary, a cubin, PTX text. Anything else is searched for fat binaries.
 *
 * Allocates nothing; the results point into the bytes of the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fatbin/bytes.h"
#include "kernel/fatbin/elf.h"

struct hed_why;

enum hed_find_flag {
    /* In ELF files, search only the sections where compilers put GPU code. Without this flag, fat
     * binaries in read-only data are found too; some libraries have thousands of them there. */
    HED_FIND_SECTIONS = 1,
};

enum hed_found_kind { HED_FOUND_FATBIN, HED_FOUND_CUBIN, HED_FOUND_PTX };

struct hed_found {
    enum hed_found_kind kind;
    struct hed_bytes bytes;   /* of a truncated fat binary, as much as there is */
    uint64_t offset;          /* in the file */
    struct hed_bytes section; /* the section of an ELF file, or empty */
    struct hed_bytes member;  /* the member of an archive, or empty */
    bool relocatable;         /* not linked yet: a part of a program built with -rdc=true */
    bool cut;                 /* the fat binary claims to be longer */
};

struct hed_find {
    struct hed_bytes file;
    unsigned flags;
    bool begun;

    bool is_archive;
    size_t member_at;        /* header of the next member */
    struct hed_bytes names;  /* the archive's table of long names */
    struct hed_bytes member; /* name of the current one */

    struct hed_elf_file object; /* the current ELF file; count is 0 if there is none */
    uint32_t section;           /* the next one to look at */

    struct hed_bytes region; /* being searched */
    size_t region_at;
    struct hed_bytes region_name;
    bool region_relocatable;

    uint64_t wrappers[3]; /* fat binary wrappers seen: of other versions, version 1, version 2 */
};

/* The bytes must stay in place until the search is over. */
void hed_find_init(struct hed_find *f, struct hed_bytes file, unsigned flags);

/* 1 and what was found, 0 at the end, or an error if the file cannot be searched. */
int hed_find_next(struct hed_find *f, struct hed_found *out, struct hed_why *why);
