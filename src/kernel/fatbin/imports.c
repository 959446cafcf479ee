/* Finding functions that code does not contain. See imports.h.
 *
 * PTX declares them (".extern .func (.param .b64 func_retval0) malloc"); machine code has undefined
 * symbols.
 */
#include "kernel/fatbin/imports.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

#include "kernel/fatbin/codes.h"
#include "kernel/fatbin/elf.h"

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

static int
code_imports(void *arg, bool is_ptx, struct hed_bytes code)
{
    return is_ptx ? hed_ptx_imports(code, arg) : hed_cubin_imports(code, arg);
}

bool
hed_image_imports(struct hed_bytes image, const char *name)
{
    return hed_image_codes(image, code_imports, (void *)(uintptr_t)name) == 1;
}
