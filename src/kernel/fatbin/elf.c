/* Reading ELF files. See elf.h. */
#include "kernel/fatbin/elf.h"

#include <elf.h>

#include "base/err.h"

#define NAME_MOST 32768u /* bytes of a name; the longest of C++ have some thousands */

static bool
section_header(const struct hed_elf_file *o, uint32_t i, Elf64_Shdr *out)
{
    /* headers + count * size is known to be within the file. */
    const uint8_t *p = hed_bytes_at(o->bytes, o->headers + (uint64_t)i * sizeof *out, sizeof *out);

    if (!p)
        return false;
    memcpy(out, p, sizeof *out);
    return true;
}

static struct hed_bytes
section_bytes(const struct hed_elf_file *o, const Elf64_Shdr *h)
{
    if (h->sh_type == SHT_NOBITS)
        return (struct hed_bytes){NULL, 0};
    return hed_bytes_cut(o->bytes, h->sh_offset, h->sh_size);
}

bool
hed_elf_file_begins(struct hed_bytes b)
{
    return hed_bytes_begin(b, ELFMAG, SELFMAG);
}

/* Files with more sections than 16 bits can count have the numbers in section 0. */
static int
read_sections(const Elf64_Ehdr *head, struct hed_elf_file *o, struct hed_why *why)
{
    uint32_t names = head->e_shstrndx;
    uint64_t count = head->e_shnum;
    Elf64_Shdr first;

    o->headers = head->e_shoff;
    if (head->e_shoff == 0)
        return 0;
    if (head->e_shentsize != sizeof first || !section_header(o, 0, &first)) {
        hed_why_set(why, "its section headers are not where it says");
        return HED_ETRUNC;
    }
    if (count == 0)
        count = first.sh_size;
    if (names == SHN_XINDEX)
        names = first.sh_link;
    if (count > UINT32_MAX || !hed_bytes_has(o->bytes, o->headers, count * sizeof first)) {
        hed_why_set(why, "its section headers go past its end");
        return HED_ETRUNC;
    }
    o->count = (uint32_t)count;
    if (names < o->count && section_header(o, names, &first))
        o->names = section_bytes(o, &first);
    return 0;
}

int
hed_elf_file_read(struct hed_bytes b, struct hed_elf_file *out, struct hed_why *why)
{
    const uint8_t *p = hed_bytes_at(b, 0, sizeof(Elf64_Ehdr));
    struct hed_elf_file o = {.bytes = b};
    Elf64_Ehdr head;

    if (!hed_elf_file_begins(b)) {
        hed_why_set(why, "not an ELF file");
        return HED_EFORMAT;
    }
    if (b.size > EI_DATA && (b.data[EI_CLASS] != ELFCLASS64 || b.data[EI_DATA] != ELFDATA2LSB)) {
        hed_why_set(why, "not a 64-bit little-endian ELF file");
        return HED_ENOTSUP;
    }
    if (!p) {
        hed_why_set(why, "an ELF file of %zu bytes: not even its header is whole", b.size);
        return HED_ETRUNC;
    }
    memcpy(&head, p, sizeof head);
    o.type = head.e_type;
    o.machine = head.e_machine;
    o.flags = head.e_flags;
    o.osabi = head.e_ident[EI_OSABI];

    const int err = read_sections(&head, &o, why);

    if (err == 0)
        *out = o;
    return err;
}

/* A name of a table of strings. Without a limit, a table without ends would be read for each of the
 * names in it. */
static struct hed_bytes
elf_name(struct hed_bytes table, uint32_t at)
{
    const struct hed_bytes rest = hed_bytes_from(table, at);

    return hed_bytes_text(hed_bytes_cut(rest, 0, rest.size < NAME_MOST ? rest.size : NAME_MOST));
}

bool
hed_elf_file_section(const struct hed_elf_file *o, uint32_t i, struct hed_elf_section *out)
{
    Elf64_Shdr h;

    if (i >= o->count || !section_header(o, i, &h))
        return false;

    const struct hed_bytes bytes = section_bytes(o, &h);

    if (h.sh_type != SHT_NOBITS && bytes.size != h.sh_size)
        return false;
    *out = (struct hed_elf_section){
        .name = elf_name(o->names, h.sh_name),
        .type = h.sh_type,
        .link = h.sh_link,
        .info = h.sh_info,
        .size = h.sh_size,
        .start = h.sh_offset,
        .bytes = bytes,
    };
    return true;
}

uint32_t
hed_elf_file_symbols(const struct hed_elf_section *table)
{
    const size_t n = table->bytes.size / sizeof(Elf64_Sym);

    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

bool
hed_elf_file_symbol(const struct hed_elf_section *table, const struct hed_elf_section *strings,
                    uint32_t i, struct hed_elf_symbol *out)
{
    Elf64_Sym s;
    const uint8_t *p = hed_bytes_at(table->bytes, (uint64_t)i * sizeof s, sizeof s);

    if (!p)
        return false;
    memcpy(&s, p, sizeof s);
    *out = (struct hed_elf_symbol){
        .name = elf_name(strings->bytes, s.st_name),
        .info = s.st_info,
        .other = s.st_other,
        .section = s.st_shndx,
        .value = s.st_value,
        .size = s.st_size,
    };
    return true;
}

bool
hed_elf_section_is(const struct hed_elf_section *s, const char *name)
{
    return s->name.size == strlen(name) && hed_elf_section_begins(s, name);
}

bool
hed_elf_section_begins(const struct hed_elf_section *s, const char *prefix)
{
    return hed_bytes_begin(s->name, prefix, strlen(prefix));
}
