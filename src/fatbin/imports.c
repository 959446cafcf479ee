/* Finding functions that code does not contain. See imports.h.
 *
 * PTX declares them (".extern .func (.param .b64 func_retval0) malloc"); machine code has undefined
 * symbols.
 */
#include "fatbin/imports.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

#include "base/arena.h"
#include "fatbin/cubin.h"
#include "fatbin/elf.h"
#include "fatbin/fatbin.h"

#define UNPACKED_MAX ((size_t)1 << 30) /* bytes of one entry */

static bool
is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

bool
hed_ptx_imports(struct hed_bytes text, const char *name)
{
    const char *from = (const char *)text.data, *end = from + text.size, *at = from;
    const size_t n = strlen(name);

    while ((at = memmem(at, (size_t)(end - at), name, n))) {
        if ((at == from || !is_name_character(at[-1])) &&
            (at + n == end || !is_name_character(at[n])))
            return true;
        at += n;
    }
    return false;
}

static bool
table_imports(const struct hed_elf_file *o, const struct hed_elf_section *table, const char *name)
{
    struct hed_elf_section strings;
    struct hed_elf_symbol s;
    const size_t n = strlen(name);

    if (!hed_elf_file_section(o, table->link, &strings))
        return false;
    for (uint32_t i = 1; i < hed_elf_file_symbols(table); i++)
        if (hed_elf_file_symbol(table, &strings, i, &s) && s.section == SHN_UNDEF &&
            s.name.size == n && memcmp(s.name.data, name, n) == 0)
            return true;
    return false;
}

bool
hed_cubin_imports(struct hed_bytes cubin, const char *name)
{
    struct hed_elf_file o;
    struct hed_elf_section s;

    if (hed_elf_file_read(cubin, &o, NULL) != 0)
        return false;
    for (uint32_t i = 0; i < o.count; i++)
        if (hed_elf_file_section(&o, i, &s) && s.type == SHT_SYMTAB && table_imports(&o, &s, name))
            return true;
    return false;
}

static bool
entry_imports(const struct hed_fatbin_entry *e, const char *name)
{
    struct hed_arena arena;
    struct hed_bytes bytes;
    bool found = false;

    hed_arena_init(&arena, UNPACKED_MAX);
    if (hed_fatbin_image(e, &arena, &bytes, NULL) == 0)
        found = e->kind == HED_FATBIN_PTX     ? hed_ptx_imports(bytes, name)
                : e->kind == HED_FATBIN_CUBIN ? hed_cubin_imports(bytes, name)
                                              : false;
    hed_arena_fini(&arena);
    return found;
}

bool
hed_image_imports(struct hed_bytes image, const char *name)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;

    if (hed_cubin_begins(image))
        return hed_cubin_imports(image, name);
    if (hed_fatbin_walk(image, &w, NULL) != 0)
        return hed_ptx_imports(image, name);
    while (hed_fatbin_next(&w, &e, NULL) > 0)
        if (entry_imports(&e, name))
            return true;
    return false;
}
