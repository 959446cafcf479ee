/* Reads a cubin for lifting: variables, constants, and the addresses in them. See ../lift.h. */
#include "kernel/sass/lift/module.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/search.h"
#include "kernel/sass/sass.h"

#define SYMBOL_MANAGED 4 /* in st_other */
#define SECTION_ALIGN 256
#define NAME_MAX_BYTES 64

struct module_reader {
    struct hed_sass_program *p;
    struct lift_module *m;
    struct hed_arena *arena;
    struct hed_why *why;
};

static void *
alloc_cleared(struct module_reader *r, uint64_t n, size_t size)
{
    void *p;

    if (n >= (r->arena->ceiling - r->arena->used) / size)
        return NULL;
    p = hed_arena_alloc(r->arena, (size_t)(n + 1) * size, _Alignof(max_align_t));
    if (p)
        memset(p, 0, (size_t)(n + 1) * size);
    return p;
}

static bool
module_symbol(const struct lift_module *m, uint32_t i, struct hed_elf_symbol *out)
{
    return hed_elf_file_symbol(&m->symbols, &m->strings, i, out);
}

/* ---- variables ------------------------------------------------------------------------------- */

static bool
is_variables(const struct hed_elf_section *s)
{
    return hed_elf_section_is(s, ".nv.global") || hed_elf_section_is(s, ".nv.global.init") ||
           hed_elf_section_is(s, ".nv.constant3");
}

/* Constants that compilers make, those of a kernel (bank 2) and addresses (bank 4). A register may
 * choose among them. */
static bool
is_literals(const struct hed_elf_section *s)
{
    return hed_elf_section_begins(s, ".nv.constant2") || hed_elf_section_begins(s, ".nv.constant4");
}

static bool
is_variable_symbol(const struct module_reader *r, const struct hed_elf_symbol *s)
{
    return ELF64_ST_TYPE(s->info) == STT_OBJECT && s->name.size != 0 &&
           s->section < r->m->elf.count && r->m->var_of_section[s->section] != 0;
}

static const char *
var_name(struct module_reader *r, uint32_t index)
{
    char *name = hed_arena_alloc(r->arena, NAME_MAX_BYTES, 1);

    if (name)
        (void)snprintf(name, NAME_MAX_BYTES, "heddle_memory%u", index);
    return name;
}

static int
add_section_vars(struct module_reader *r)
{
    struct hed_elf_section s;

    for (uint32_t i = 0; i < r->m->elf.count; i++) {
        if (!hed_elf_file_section(&r->m->elf, i, &s) || s.size == 0 ||
            (!is_variables(&s) && !is_literals(&s)))
            continue;

        const uint32_t index = r->p->var_count++;

        r->p->vars[index] = (struct hed_sass_var){
            .name = var_name(r, index),
            .size = s.size,
            .align = SECTION_ALIGN,
            .constant = hed_elf_section_begins(&s, ".nv.constant"),
            .of_compiler = is_literals(&s),
            .init = s.bytes,
        };
        if (!r->p->vars[index].name)
            return HED_ELIMIT;
        r->m->var_of_section[i] = index + 1;
        if (hed_elf_section_is(&s, ".nv.constant3"))
            r->m->constants = index;
    }
    return 0;
}

/* Managed variables have memory of their own; the others are parts of their section. */
static int
add_symbols(struct module_reader *r)
{
    const uint32_t count = hed_elf_file_symbols(&r->m->symbols);
    struct hed_elf_symbol s;

    for (uint32_t i = 0; i < count; i++) {
        if (!module_symbol(r->m, i, &s) || !is_variable_symbol(r, &s))
            continue;

        uint32_t var = r->m->var_of_section[s.section] - 1;

        if (!hed_range_fits(s.value, s.size, r->p->vars[var].size)) {
            hed_why_set(r->why, "a variable is not in its section");
            return HED_EFORMAT;
        }

        struct hed_sass_symbol *out = &r->p->symbols[r->p->symbol_count++];

        *out = (struct hed_sass_symbol){.name = s.name,
                                        .var = var,
                                        .at = s.value,
                                        .size = s.size,
                                        .visible = ELF64_ST_BIND(s.info) != STB_LOCAL};
        if (!(s.other & SYMBOL_MANAGED))
            continue;
        out->var = r->p->var_count++;
        out->at = 0;
        r->m->managed[i] = out->var + 1;
        r->p->vars[out->var] = (struct hed_sass_var){
            .name = var_name(r, out->var),
            .size = s.size,
            .align = SECTION_ALIGN,
            .managed = true,
            .init = hed_bytes_cut(r->p->vars[var].init, s.value, s.size),
        };
        if (!r->p->vars[out->var].name)
            return HED_ELIMIT;
    }
    return 0;
}

static int
compare_symbol_names(const void *a, const void *b)
{
    const struct hed_bytes *x = &((const struct hed_sass_symbol *)a)->name;
    const struct hed_bytes *y = &((const struct hed_sass_symbol *)b)->name;
    const size_t both = x->size < y->size ? x->size : y->size;
    const int order = both ? memcmp(x->data, y->data, both) : 0;

    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Marks symbols whose names others have. */
static void
find_repeated_names(struct hed_sass_program *p)
{
    qsort(p->symbols, p->symbol_count, sizeof *p->symbols, compare_symbol_names);
    for (uint32_t i = 1; i < p->symbol_count; i++)
        if (compare_symbol_names(&p->symbols[i - 1], &p->symbols[i]) == 0)
            p->symbols[i - 1].repeated = p->symbols[i].repeated = true;
}

int
hed_lift_compare_symbols(const void *a, const void *b)
{
    const struct hed_sass_symbol *x = a, *y = b;

    if (x->var != y->var)
        return x->var < y->var ? -1 : 1;
    return hed_compare_pairs(x->at, x->size, y->at, y->size);
}

/* Marks symbols that overlap, once they are sorted. */
static void
find_shared_symbols(struct hed_sass_program *p)
{
    struct hed_sass_symbol *last = NULL; /* of the piece, the one that ends last */

    for (uint32_t i = 0; i < p->symbol_count; i++) {
        struct hed_sass_symbol *s = &p->symbols[i];

        if (s->size && last && last->var == s->var && s->at < last->at + last->size)
            s->shared = last->shared = true;
        if (!last || last->var != s->var || s->at + s->size > last->at + last->size)
            last = s;
    }
}

static int
read_variables(struct module_reader *r)
{
    const uint64_t symbols = hed_elf_file_symbols(&r->m->symbols);

    r->m->var_of_section = alloc_cleared(r, r->m->elf.count, sizeof(uint32_t));
    r->p->vars = alloc_cleared(r, symbols + r->m->elf.count, sizeof(struct hed_sass_var));
    r->p->symbols = alloc_cleared(r, symbols, sizeof(struct hed_sass_symbol));
    r->m->managed = alloc_cleared(r, symbols, sizeof(uint32_t));
    if (!r->m->var_of_section || !r->p->vars || !r->p->symbols || !r->m->managed)
        return HED_ELIMIT;

    int err = add_section_vars(r);

    if (!err)
        err = add_symbols(r);
    if (err)
        return err;
    find_repeated_names(r->p);
    qsort(r->p->symbols, r->p->symbol_count, sizeof *r->p->symbols, hed_lift_compare_symbols);
    find_shared_symbols(r->p);
    return 0;
}

/* ---- a module -------------------------------------------------------------------------------- */

bool
hed_sass_lifts(struct hed_arch arch)
{
    return arch.number >= HED_SASS_FIRST_ARCH && arch.number <= HED_SASS_LAST_ARCH;
}

static int
read_module(struct module_reader *r, struct hed_bytes cubin)
{
    int err = hed_cubin_read(cubin, r->arena, &r->p->cubin, r->why);

    if (!err && !hed_sass_lifts(r->p->cubin.arch)) {
        hed_why_set(r->why, "machine code of sm_%u cannot be lifted", r->p->cubin.arch.number);
        err = HED_ENOTSUP;
    }
    if (!err)
        err = hed_elf_file_read(cubin, &r->m->elf, r->why);
    if (err)
        return err;
    r->m->constants = UINT32_MAX;
    for (uint32_t i = 0; i < r->m->elf.count; i++) {
        struct hed_elf_section s;

        if (hed_elf_file_section(&r->m->elf, i, &s) && s.type == SHT_SYMTAB &&
            hed_elf_file_section(&r->m->elf, s.link, &r->m->strings))
            r->m->symbols = s;
    }
    err = read_variables(r);
    return err ? err : hed_lift_read_addresses(r->p, r->arena, r->why);
}

int
hed_sass_open(struct hed_bytes cubin, struct hed_arena *arena, struct hed_sass_program **out,
              struct hed_why *why)
{
    struct module_reader r = {.arena = arena, .why = why};
    int err = HED_ELIMIT;

    r.p = alloc_cleared(&r, 1, sizeof *r.p);
    r.m = alloc_cleared(&r, 1, sizeof *r.m);
    if (r.p && r.m) {
        r.p->inside = r.m;
        err = read_module(&r, cubin);
    }
    if (err == HED_ELIMIT)
        hed_why_set(why, "the cubin is too large");
    *out = err ? NULL : r.p;
    return err;
}

/* ---- code ------------------------------------------------------------------------------------ */

bool
hed_lift_is_named(const struct hed_elf_section *s, const char *prefix, struct hed_bytes name)
{
    const size_t n = strlen(prefix);

    return hed_elf_section_begins(s, prefix) && s->name.size == n + name.size && name.size &&
           memcmp(s->name.data + n, name.data, name.size) == 0;
}

static struct lift_bank
bank_of_section(const struct lift_module *m, uint32_t section, struct hed_bytes bytes, uint32_t var)
{
    struct lift_bank b = {.bytes = bytes, .var = var, .section = section};

    b.addresses = hed_lift_addresses(m, section, &b.count);
    return b;
}

int
hed_lift_find_code(const struct hed_sass_program *p, uint32_t kernel,
                   const struct lift_place *function, struct lift_code *out, struct hed_why *why)
{
    const struct lift_module *m = p->inside;
    struct hed_elf_section s;
    uint32_t section = 0;

    *out = (struct lift_code){0};
    if (kernel >= p->cubin.kernel_count)
        return HED_EINVAL;
    *out = (struct lift_code){.kernel = &p->cubin.kernels[kernel],
                              .name = p->cubin.kernels[kernel].name,
                              .constants = m->constants};
    for (uint32_t i = 0; i < m->elf.count; i++) {
        if (!hed_elf_file_section(&m->elf, i, &s))
            continue;
        if (hed_lift_is_named(&s, ".text.", out->name)) {
            section = i;
            out->bytes = hed_bytes_cut(s.bytes, 0, s.bytes.size / HED_SASS_BYTES * HED_SASS_BYTES);
        } else if (hed_lift_is_named(&s, ".nv.constant2.", out->name) ||
                   (hed_elf_section_is(&s, ".nv.constant2") && !out->literals.bytes.size))
            out->literals = bank_of_section(m, i, s.bytes, m->var_of_section[i] - 1);
        else if (hed_lift_is_named(&s, ".nv.constant4.", out->name) ||
                 (hed_elf_section_is(&s, ".nv.constant4") && !out->pool.bytes.size))
            out->pool = bank_of_section(m, i, s.bytes, m->var_of_section[i] - 1);
    }
    if (out->bytes.size)
        return hed_lift_link(p, function ? function->section : section, out, why);
    hed_why_set(why, "the cubin has no code for this kernel");
    return HED_ENOTFOUND;
}
