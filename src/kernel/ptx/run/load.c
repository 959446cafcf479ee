/* Loads object files. See load.h.
 *
 *   bytes --headers, sections, symbols checked--> struct object
 *         --sections placed in three parts of one mapping--> code | constants | data
 *         --relocations--> protected: code r-x, constants r--, data rw-
 *
 * After the sections of code comes one jump for each symbol that is not in the file, for calls that
 * would not reach it. After the constants comes a table with the address of each symbol (GOT).
 */
#include "kernel/ptx/run/load.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/run/reloc.h"

#if defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#else
#error "kernels run on aarch64 and x86-64"
#endif

#define IMAGE_MAX ((uint64_t)512 << 20) /* bytes of a loaded object */
#define ALIGN_MAX 65536                 /* of a section */

enum part { CODE, CONSTANTS, DATA, PARTS };

struct object {
    const unsigned char *bytes;
    size_t size;
    unsigned nsections;
    uint64_t sections; /* offset of the headers */
    const unsigned char *symbols;
    size_t nsymbols;
    const char *names; /* of the symbols; the last byte is 0 */
    size_t names_size;
    uint64_t *at;              /* nsections: where each is in the image; 0 with no `placed` */
    bool *placed;              /* nsections: it has a place in memory */
    uint64_t *value;           /* nsymbols: addresses, once the image is mapped */
    bool *outside;             /* nsymbols: not defined in the file */
    uint64_t begin[PARTS + 1]; /* of the parts in the image */
    uint64_t jumps, got;       /* in the image */
    unsigned char *image;
    struct hed_why *why;
};

static void
get_section(const struct object *o, unsigned i, Elf64_Shdr *out)
{
    memcpy(out, o->bytes + o->sections + (uint64_t)i * sizeof *out, sizeof *out);
}

static void
get_symbol(const struct object *o, size_t i, Elf64_Sym *out)
{
    memcpy(out, o->symbols + i * sizeof *out, sizeof *out);
}

static const char *
symbol_name(const struct object *o, const Elf64_Sym *s)
{
    return s->st_name < o->names_size ? o->names + s->st_name : "";
}

static int
check_elf_header(struct object *o)
{
    Elf64_Ehdr h;

    if (o->size < sizeof h) {
        hed_why_set(o->why, "an object file of %zu bytes", o->size);
        return HED_ETRUNC;
    }
    memcpy(&h, o->bytes, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL ||
        h.e_shentsize != sizeof(Elf64_Shdr)) {
        hed_why_set(o->why, "not a 64-bit ELF object file");
        return HED_EFORMAT;
    }
    if (h.e_machine != HOST_MACHINE) {
        hed_why_set(o->why, "an object file for machine %u", h.e_machine);
        return HED_ENOTSUP;
    }
    if (!hed_range_fits(h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr), o->size)) {
        hed_why_set(o->why, "section headers are outside of the file");
        return HED_ETRUNC;
    }
    o->sections = h.e_shoff;
    o->nsections = h.e_shnum;
    return 0;
}

/* The symbol table and its names. */
static int
find_symbol_table(struct object *o)
{
    for (unsigned i = 0; i < o->nsections; i++) {
        Elf64_Shdr s, names;

        get_section(o, i, &s);
        if (s.sh_type != SHT_SYMTAB)
            continue;
        if (!hed_range_fits(s.sh_offset, s.sh_size, o->size) || s.sh_link >= o->nsections) {
            hed_why_set(o->why, "the symbol table is outside of the file");
            return HED_EFORMAT;
        }
        get_section(o, s.sh_link, &names);
        if (names.sh_type != SHT_STRTAB || names.sh_size == 0 ||
            !hed_range_fits(names.sh_offset, names.sh_size, o->size) ||
            o->bytes[names.sh_offset + names.sh_size - 1] != 0) {
            hed_why_set(o->why, "the names of the symbols are malformed");
            return HED_EFORMAT;
        }
        o->symbols = o->bytes + s.sh_offset;
        o->nsymbols = s.sh_size / sizeof(Elf64_Sym);
        o->names = (const char *)o->bytes + names.sh_offset;
        o->names_size = names.sh_size;
        return 0;
    }
    hed_why_set(o->why, "there is no symbol table");
    return HED_EFORMAT;
}

static enum part
part_of(const Elf64_Shdr *s)
{
    if (s->sh_flags & SHF_EXECINSTR)
        return CODE;
    return s->sh_flags & SHF_WRITE ? DATA : CONSTANTS;
}

static int
check_section(const struct object *o, unsigned i, const Elf64_Shdr *s)
{
    const bool odd = s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY ||
                     s->sh_type == SHT_PREINIT_ARRAY || (s->sh_flags & SHF_TLS) ||
                     ((s->sh_flags & SHF_EXECINSTR) && (s->sh_flags & SHF_WRITE));

    if (odd) {
        hed_why_set(o->why, "section %u is of a kind that kernels do not have", i);
        return HED_ENOTSUP;
    }
    if (s->sh_type != SHT_NOBITS && !hed_range_fits(s->sh_offset, s->sh_size, o->size)) {
        hed_why_set(o->why, "section %u is outside of the file", i);
        return HED_ETRUNC;
    }
    if (s->sh_addralign > ALIGN_MAX || (s->sh_addralign & (s->sh_addralign - 1)) != 0) {
        hed_why_set(o->why, "section %u has the alignment %llu", i,
                    (unsigned long long)s->sh_addralign);
        return HED_EFORMAT;
    }
    if (s->sh_size > IMAGE_MAX) {
        hed_why_set(o->why, "section %u is too large", i);
        return HED_ELIMIT;
    }
    return 0;
}

/* Gives each section that belongs to the program a place in the image. */
static int
place_sections(struct object *o)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = 0;

    for (int part = CODE; part < PARTS; part++) {
        at = hed_align_up(at, hed_max(page, ALIGN_MAX));
        o->begin[part] = at;
        for (unsigned i = 0; i < o->nsections; i++) {
            Elf64_Shdr s;

            get_section(o, i, &s);
            if (!(s.sh_flags & SHF_ALLOC) || (int)part_of(&s) != part)
                continue;

            const int err = check_section(o, i, &s);

            if (err)
                return err;
            at = hed_align_up(at, s.sh_addralign);
            o->at[i] = at;
            o->placed[i] = true;
            at += s.sh_size;
            if (at > IMAGE_MAX) {
                hed_why_set(o->why, "the program is too large");
                return HED_ELIMIT;
            }
        }
        at = hed_align_up(at, 16);
        if (part == CODE) {
            o->jumps = at;
            at += (uint64_t)o->nsymbols * HED_RELOC_JUMP;
        } else if (part == CONSTANTS) {
            o->got = at;
            at += (uint64_t)o->nsymbols * sizeof(uint64_t);
        }
    }
    o->begin[PARTS] = hed_align_up(at, page);
    return 0;
}

static int
map_image(struct object *o)
{
    void *p =
        mmap(NULL, o->begin[PARTS], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        hed_why_set(o->why, "not enough memory for the program");
        return HED_ENOMEM;
    }
    o->image = p;
    for (unsigned i = 0; i < o->nsections; i++) {
        Elf64_Shdr s;

        get_section(o, i, &s);
        if (o->placed[i] && s.sh_type != SHT_NOBITS)
            memcpy(o->image + o->at[i], o->bytes + s.sh_offset, s.sh_size);
    }
    return 0;
}

static const void *
find_in_tables(const struct hed_ptx_symbol *const *tables, size_t ntables, const char *name)
{
    for (size_t t = 0; t < ntables; t++) {
        for (const struct hed_ptx_symbol *s = tables[t]; s->name; s++) {
            if (strcmp(s->name, name) == 0)
                return s->address;
        }
    }
    return NULL;
}

/* Finds the address of each symbol. A symbol that is not found is an error only if it is used: LLVM
 * leaves names behind that nothing refers to. */
static int
resolve_symbols(struct object *o, const struct hed_ptx_symbol *const *tables, size_t ntables)
{
    for (size_t i = 1; i < o->nsymbols; i++) {
        Elf64_Sym s;

        get_symbol(o, i, &s);
        if (s.st_shndx == SHN_UNDEF) {
            o->value[i] = (uint64_t)(uintptr_t)find_in_tables(tables, ntables, symbol_name(o, &s));
            o->outside[i] = true;
            hed_reloc_jump(HOST_MACHINE, o->image + o->jumps + i * HED_RELOC_JUMP, o->value[i]);
        } else if (s.st_shndx == SHN_ABS) {
            o->value[i] = s.st_value;
        } else if (s.st_shndx < o->nsections && o->placed[s.st_shndx]) {
            Elf64_Shdr h;

            get_section(o, s.st_shndx, &h);
            if (s.st_value > h.sh_size || s.st_size > h.sh_size - s.st_value) {
                hed_why_set(o->why, "symbol %s is outside of its section", symbol_name(o, &s));
                return HED_EFORMAT;
            }
            o->value[i] = (uint64_t)(uintptr_t)o->image + o->at[s.st_shndx] + s.st_value;
        }
        memcpy(o->image + o->got + i * sizeof(uint64_t), &o->value[i], sizeof(uint64_t));
    }
    return 0;
}

static int
relocate(const struct object *o, const Elf64_Shdr *section, uint64_t at, const Elf64_Rela *r)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    const uint32_t symbol = ELF64_R_SYM(r->r_info);
    unsigned bytes = 0;
    const enum hed_reloc_want want = hed_reloc_want(HOST_MACHINE, type, &bytes);

    if (want == HED_RELOC_NOTHING)
        return 0;
    if (want == HED_RELOC_UNKNOWN) {
        hed_why_set(o->why, "relocations of type %u are not known", type);
        return HED_ENOTSUP;
    }
    if (symbol == 0 || symbol >= o->nsymbols || r->r_offset > section->sh_size ||
        bytes > section->sh_size - r->r_offset) {
        hed_why_set(o->why, "a relocation is outside of its section");
        return HED_EFORMAT;
    }

    Elf64_Sym s;

    get_symbol(o, symbol, &s);
    if (o->value[symbol] == 0) {
        hed_why_set(o->why, "symbol %.200s is not known", symbol_name(o, &s));
        return HED_ENOTFOUND;
    }

    unsigned char *where = o->image + at + r->r_offset;
    const uint64_t place = (uint64_t)(uintptr_t)where;
    uint64_t value = o->value[symbol];

    if (want == HED_RELOC_GOT)
        value = (uint64_t)(uintptr_t)o->image + o->got + symbol * sizeof(uint64_t);
    else if (want == HED_RELOC_DATA && o->outside[symbol])
        value = 0; /* Its page is that of a jump: see load.h. */
    else if (want == HED_RELOC_CALL && o->outside[symbol])
        value = (uint64_t)(uintptr_t)o->image + o->jumps + (uint64_t)symbol * HED_RELOC_JUMP;

    const int err = value == 0
                        ? HED_ENOTSUP
                        : hed_reloc_apply(HOST_MACHINE, type, where, place, value, r->r_addend);

    if (err)
        hed_why_set(o->why, "symbol %.200s is out of reach of relocation %u", symbol_name(o, &s),
                    type);
    return err;
}

static int
relocate_all(const struct object *o)
{
    for (unsigned i = 0; i < o->nsections; i++) {
        Elf64_Shdr table, section;

        get_section(o, i, &table);
        if (table.sh_type != SHT_RELA && table.sh_type != SHT_REL)
            continue;
        if (table.sh_info >= o->nsections || !o->placed[table.sh_info])
            continue;
        if (table.sh_type == SHT_REL || !hed_range_fits(table.sh_offset, table.sh_size, o->size)) {
            hed_why_set(o->why, "relocations in section %u are malformed", i);
            return HED_EFORMAT;
        }
        get_section(o, table.sh_info, &section);
        if (section.sh_type == SHT_NOBITS) {
            hed_why_set(o->why, "relocations in a section without bytes");
            return HED_EFORMAT;
        }
        for (uint64_t n = 0; n < table.sh_size / sizeof(Elf64_Rela); n++) {
            Elf64_Rela r;

            memcpy(&r, o->bytes + table.sh_offset + n * sizeof r, sizeof r);

            const int err = relocate(o, &section, o->at[table.sh_info], &r);

            if (err)
                return err;
        }
    }
    return 0;
}

/* The address of a name that must be defined in the file, in that part, with at least that many
 * bytes. */
static int
find_defined(const struct object *o, const char *name, enum part part, size_t bytes,
             const unsigned char **out)
{
    for (size_t i = 1; i < o->nsymbols; i++) {
        Elf64_Sym s;
        Elf64_Shdr h;

        get_symbol(o, i, &s);
        if (strcmp(symbol_name(o, &s), name) != 0)
            continue;
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= o->nsections || !o->placed[s.st_shndx])
            continue;
        get_section(o, s.st_shndx, &h);
        if (part_of(&h) != part || bytes > h.sh_size - s.st_value)
            continue;
        *out = o->image + o->at[s.st_shndx] + s.st_value;
        return 0;
    }
    hed_why_set(o->why, "the object file has no %s", name);
    return HED_EFORMAT;
}

static int
find_kernel_entry(const struct object *o, struct hed_ptx_loaded *out)
{
    const unsigned char *entry, *info;
    int err = find_defined(o, "hed_kernel", CODE, 1, &entry);

    if (!err)
        err = find_defined(o, "hed_kernel_info", CONSTANTS, sizeof out->info, &info);
    if (err)
        return err;
    memcpy(&out->info, info, sizeof out->info);
    if (out->info.abi != HED_PTX_ABI) {
        hed_why_set(o->why, "compiled for another version of heddle");
        return HED_EVERSION;
    }
    out->entry = (hed_ptx_entry)(uintptr_t)entry;
    return 0;
}

static int
protect(const struct object *o)
{
    static const int prot[PARTS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};

    for (int part = CODE; part < PARTS; part++) {
        const uint64_t from = o->begin[part];
        const uint64_t bytes = o->begin[part + 1] - from;

        /* Emulators refuse an empty range. */
        if (bytes > 0 && mprotect(o->image + from, bytes, prot[part]) != 0) {
            hed_why_set(o->why, "the program's memory cannot be made executable");
            return HED_EACCESS;
        }
    }
    __builtin___clear_cache((char *)o->image, (char *)o->image + o->begin[CONSTANTS]);
    return 0;
}

int
hed_ptx_load(const void *bytes, size_t size, const struct hed_ptx_symbol *const *tables,
             size_t ntables, struct hed_ptx_loaded *out, struct hed_why *why)
{
    struct object o = {.bytes = bytes, .size = size, .why = why};
    struct hed_ptx_loaded l = {0};
    int err = check_elf_header(&o);

    if (!err)
        err = find_symbol_table(&o);
    if (err)
        return err;
    o.at = calloc(o.nsections + 1, sizeof *o.at);
    o.placed = calloc(o.nsections + 1, sizeof *o.placed);
    o.value = calloc(o.nsymbols + 1, sizeof *o.value);
    o.outside = calloc(o.nsymbols + 1, sizeof *o.outside);
    if (!o.at || !o.placed || !o.value || !o.outside) {
        hed_why_set(why, "not enough memory to load a program");
        err = HED_ENOMEM;
    }
    if (!err)
        err = place_sections(&o);
    if (!err)
        err = map_image(&o);
    if (!err)
        err = resolve_symbols(&o, tables, ntables);
    if (!err)
        err = relocate_all(&o);
    if (!err)
        err = find_kernel_entry(&o, &l);
    if (!err)
        err = protect(&o);
    if (!err) {
        l.base = o.image;
        l.size = o.begin[PARTS];
        *out = l;
    } else if (o.image) {
        munmap(o.image, o.begin[PARTS]);
    }
    free(o.at);
    free(o.placed);
    free(o.value);
    free(o.outside);
    return err;
}

void
hed_ptx_unload(struct hed_ptx_loaded *l)
{
    if (l->base)
        munmap(l->base, l->size);
    l->base = NULL;
}
