/* Checks that images are intact. See intact.h.
 *
 * NVIDIA's driver looks for the compiler options of an entry with PTX without asking whether there
 * are any. If there are none, it follows whatever is at the beginning of the entry, out of the
 * image.
 */
#include "remote/server/worker/intact.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "kernel/fatbin.h"

#define TEXT_LOOK 4 /* bytes that must look like text */

/* Our own reader does not look at segments, but a loader does. */
static bool
segments_are_intact(struct hed_bytes b)
{
    const uint8_t *head = hed_bytes_at(b, 0, sizeof(Elf64_Ehdr));
    Elf64_Ehdr e;

    if (!head)
        return false;
    memcpy(&e, head, sizeof e);
    if (e.e_phnum && e.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (uint32_t i = 0; i < e.e_phnum; i++) {
        const uint64_t offset = (uint64_t)i * sizeof(Elf64_Phdr);
        const uint8_t *at =
            e.e_phoff <= b.size ? hed_bytes_at(b, e.e_phoff + offset, sizeof(Elf64_Phdr)) : NULL;
        Elf64_Phdr p;

        if (!at)
            return false;
        memcpy(&p, at, sizeof p);
        if (p.p_filesz && (p.p_offset > b.size || p.p_filesz > b.size - p.p_offset))
            return false;
    }
    return true;
}

static bool
symbols_are_intact(const struct hed_elf_file *o, const struct hed_elf_section *table)
{
    struct hed_elf_section strings;
    struct hed_elf_symbol s;

    if (!hed_elf_file_section(o, table->link, &strings) || !strings.bytes.size ||
        strings.bytes.data[strings.bytes.size - 1] != 0)
        return false;
    for (uint32_t i = 0, n = hed_elf_file_symbols(table); i < n; i++)
        if (!hed_elf_file_symbol(table, &strings, i, &s) ||
            (s.section != SHN_UNDEF && s.section < SHN_LORESERVE && s.section >= o->count))
            return false;
    return true;
}

/* Sections of NVIDIA's own types may stand for memory that is not in the file, as NOBITS does. */
static bool
is_special(const struct hed_elf_file *o, uint32_t i)
{
    const uint8_t *at =
        hed_bytes_at(o->bytes, o->headers + (uint64_t)i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));

    return at && hed_load_u32(at + offsetof(Elf64_Shdr, sh_type)) >= SHT_LOPROC;
}

static bool
cubin_is_intact(struct hed_bytes b)
{
    struct hed_elf_file o;
    struct hed_elf_section s;

    if (hed_elf_file_read(b, &o, NULL) != 0 || o.machine != HED_ELF_CUDA || !segments_are_intact(b))
        return false;
    for (uint32_t i = 0; i < o.count; i++) {
        if (!hed_elf_file_section(&o, i, &s)) {
            if (is_special(&o, i))
                continue;
            return false;
        }
        if (s.link >= o.count)
            return false;
        if (s.type == SHT_SYMTAB && !symbols_are_intact(&o, &s))
            return false;
    }
    return true;
}

static bool
entry_is_intact(const struct hed_fatbin_entry *e, bool strict)
{
    if (e->kind == HED_FATBIN_PTX) {
        if (strict && !e->has_options)
            return false;
        return e->packing != HED_PACKING_NONE ||
               (e->stored.size && memchr(e->stored.data, 0, e->stored.size));
    }
    return e->kind != HED_FATBIN_CUBIN || e->packing != HED_PACKING_NONE ||
           cubin_is_intact(e->stored);
}

/* Text ends with the 0 after the image. Everything else that a driver knows begins with other
 * bytes, for example a wrapper that holds the address of an image. */
static bool
is_image_text(struct hed_bytes b)
{
    for (size_t i = 0; i < b.size && i < TEXT_LOOK; i++) {
        const uint8_t c = b.data[i];

        if (c == 0)
            return true;
        if (c != '\t' && c != '\n' && c != '\r' && (c < ' ' || c > '~'))
            return false;
    }
    return b.size > 0;
}

bool
hed_image_is_intact(const void *image, uint64_t size, bool strict)
{
    const struct hed_bytes b = {image, (size_t)size};
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    uint64_t said;
    int r;

    if (hed_cubin_begins(b))
        return cubin_is_intact(b);
    if (!hed_fatbin_begins(b, &said))
        return is_image_text(b);
    if (said > size || hed_fatbin_walk(b, &w, NULL) != 0)
        return false;
    while ((r = hed_fatbin_next(&w, &e, NULL)) > 0)
        if (!entry_is_intact(&e, strict))
            return false;
    return r == 0;
}
