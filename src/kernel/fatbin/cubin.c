/* Reading a cubin. See cubin.h.
 *
 * A section that belongs to a kernel has the section of the kernel's code in sh_info; records about
 * the whole module name the kernel's symbol. With a table for each of these numbers, one pass is
 * enough.
 */
#include "kernel/fatbin/cubin.h"

#include <elf.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernel/fatbin/elf.h"

#define SHT_CUDA_INFO 0x70000000u
#define SHT_CUDA_COMPAT 0x70000086u
#define STO_CUDA_ENTRY 0x10 /* in st_other: a kernel, not a function that kernels call */
#define OSABI_CUDA_13 0x41

/* From sm_90 on, .nv.shared.<kernel> of a linked cubin includes 1 KiB that the system reserves. */
#define RESERVED_SHARED 1024
#define RESERVED_SINCE 90

struct reader {
    struct hed_elf_file o;
    struct hed_arena *arena;
    struct hed_cubin *c;
    uint32_t *by_section; /* [o.count]: 1 + number of the kernel whose code is there, or 0 */
    uint32_t *by_symbol;  /* [symbols] */
    uint32_t symbols;
    int err;
};

bool
hed_cubin_begins(struct hed_bytes b)
{
    const uint8_t *p = hed_bytes_at(b, 0, sizeof(Elf64_Ehdr));

    return p && hed_elf_file_begins(b) && p[EI_CLASS] == ELFCLASS64 &&
           hed_load_u16(p + offsetof(Elf64_Ehdr, e_machine)) == HED_ELF_CUDA;
}

static int
open_cubin_elf(struct hed_bytes b, struct hed_elf_file *o, struct hed_why *why)
{
    const int err = hed_elf_file_read(b, o, why);

    if (err != 0)
        return err;
    if (o->machine != HED_ELF_CUDA) {
        hed_why_set(why, "not a cubin: an ELF file for machine %u", o->machine);
        return HED_ENOTSUP;
    }
    return 0;
}

static struct hed_arch
cubin_arch(const struct hed_elf_file *o)
{
    const bool old = o->osabi != OSABI_CUDA_13;
    struct hed_arch arch = {old ? o->flags & 0xff : o->flags >> 8 & 0xff, '\0'};
    struct hed_elf_section s;

    /* Older cubins mark it in the byte after the architecture. */
    if (old && (o->flags >> 8 & 8))
        arch.suffix = 'a';
    for (uint32_t i = 0; !old && i < o->count; i++) {
        if (hed_elf_file_section(o, i, &s) && s.type == SHT_CUDA_COMPAT &&
            hed_cubin_info_exact(s.bytes))
            arch.suffix = 'a';
    }
    return arch;
}

int
hed_cubin_arch(struct hed_bytes b, struct hed_arch *out, struct hed_why *why)
{
    struct hed_elf_file o;
    const int err = open_cubin_elf(b, &o, why);

    if (err == 0)
        *out = cubin_arch(&o);
    return err;
}

/* Zeroed memory in the arena for n things, at least one. */
static void *
alloc_zeroed(struct reader *r, uint64_t n, size_t size)
{
    void *p = NULL;

    if (n <= (r->arena->ceiling - r->arena->used) / size)
        p = hed_arena_alloc(r->arena, (size_t)n * size, _Alignof(max_align_t));
    if (p)
        memset(p, 0, (size_t)n * size);
    else if (!r->err)
        r->err = HED_ELIMIT;
    return p;
}

static bool
is_kernel_symbol(const struct reader *r, const struct hed_elf_symbol *s)
{
    return (s->info & 0xf) == STT_FUNC && (s->other & STO_CUDA_ENTRY) && s->section != SHN_UNDEF &&
           s->section < r->o.count;
}

static bool
find_cubin_symbols(const struct reader *r, struct hed_elf_section *table,
                   struct hed_elf_section *strings)
{
    for (uint32_t i = 0; i < r->o.count; i++) {
        if (hed_elf_file_section(&r->o, i, table) && table->type == SHT_SYMTAB)
            return hed_elf_file_section(&r->o, table->link, strings);
    }
    return false;
}

static void
list_kernels(struct reader *r)
{
    struct hed_elf_section table, strings;
    struct hed_elf_symbol s;
    uint32_t n = 0;

    if (!find_cubin_symbols(r, &table, &strings))
        return;
    r->symbols = hed_elf_file_symbols(&table);
    for (uint32_t i = 0; i < r->symbols; i++)
        n += hed_elf_file_symbol(&table, &strings, i, &s) && is_kernel_symbol(r, &s);
    r->c->kernels = alloc_zeroed(r, n ? n : 1, sizeof *r->c->kernels);
    r->by_section = alloc_zeroed(r, r->o.count, sizeof *r->by_section);
    r->by_symbol = alloc_zeroed(r, r->symbols, sizeof *r->by_symbol);
    if (r->err)
        return;
    for (uint32_t i = 0; i < r->symbols; i++) {
        if (!hed_elf_file_symbol(&table, &strings, i, &s) || !is_kernel_symbol(r, &s))
            continue;

        struct hed_cubin_kernel *k = &r->c->kernels[r->c->kernel_count++];

        k->name = s.name;
        k->code = s.size;
        r->by_symbol[i] = r->c->kernel_count;
        r->by_section[s.section] = r->c->kernel_count;
    }
}

static int
read_global(void *arg, uint8_t attribute, struct hed_bytes value)
{
    struct reader *r = arg;
    uint32_t symbol;

    if (hed_cubin_info_global(attribute, value, &symbol, NULL) && symbol < r->symbols &&
        r->by_symbol[symbol])
        hed_cubin_info_global(attribute, value, &symbol, &r->c->kernels[r->by_symbol[symbol] - 1]);
    return 0;
}

static int
read_info(struct reader *r, const struct hed_elf_section *s, struct hed_cubin_kernel *k)
{
    /* A kernel has one such section: a second one would leave parameters of the first behind. */
    if (k->params)
        return HED_EFORMAT;

    int err = hed_cubin_info_kernel(s->bytes, k, &r->c->api);

    if (err == 0 && k->param_count) {
        k->params = alloc_zeroed(r, k->param_count, sizeof *k->params);
        err = k->params ? hed_cubin_info_kernel(s->bytes, k, &r->c->api) : r->err;
    }
    return err;
}

static void
read_shared(const struct reader *r, const struct hed_elf_section *s, struct hed_cubin_kernel *k)
{
    const bool reserves = r->c->linked && r->c->arch.number >= RESERVED_SINCE;

    k->reserved = reserves && s->size >= RESERVED_SHARED ? RESERVED_SHARED : 0;
    k->shared = s->size - k->reserved;
}

static int
read_section(struct reader *r, const struct hed_elf_section *s)
{
    if (s->type == SHT_CUDA_INFO && hed_elf_section_is(s, ".nv.info"))
        return hed_cubin_info_each(s->bytes, read_global, r);

    const uint32_t number = s->info < r->o.count ? r->by_section[s->info] : 0;
    struct hed_cubin_kernel *k = number ? &r->c->kernels[number - 1] : NULL;

    if (!k)
        return 0;
    if (s->type == SHT_CUDA_INFO && hed_elf_section_begins(s, ".nv.info."))
        return read_info(r, s, k);
    if (hed_elf_section_begins(s, ".nv.shared."))
        read_shared(r, s, k);
    else if (hed_elf_section_begins(s, ".nv.local."))
        k->local = s->size;
    else if (hed_elf_section_begins(s, ".nv.constant0."))
        k->constant = s->size;
    return 0;
}

int
hed_cubin_read(struct hed_bytes b, struct hed_arena *arena, struct hed_cubin *out,
               struct hed_why *why)
{
    struct hed_cubin c = {0};
    struct reader r = {.arena = arena, .c = &c};
    struct hed_elf_section s;
    const int err = open_cubin_elf(b, &r.o, why);

    if (err != 0)
        return err;
    c.arch = cubin_arch(&r.o);
    c.linked = r.o.type == ET_EXEC;
    list_kernels(&r);
    for (uint32_t i = 0; !r.err && c.kernel_count && i < r.o.count; i++) {
        if (!hed_elf_file_section(&r.o, i, &s))
            r.err = HED_ETRUNC;
        else
            r.err = read_section(&r, &s);
        if (r.err)
            hed_why_set(why, "section %u of the cubin: %s", i, hed_err_text(r.err));
    }
    if (!r.err)
        *out = c;
    else if (!c.kernel_count)
        hed_why_set(why, "the cubin's kernels: %s", hed_err_text(r.err));
    return r.err;
}
