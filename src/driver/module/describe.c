/* Describes a cubin as code that can be queried but not run: kernels, their parameters,
 * variables. */
#include "driver/module/describe.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/machine.h"
#include "kernel/fatbin.h"

#define SYMBOL_MANAGED 4                    /* in st_other of a managed variable */
#define DESCRIPTION_MAX ((size_t)256 << 20) /* bytes */

struct description {
    struct hed_code code; /* must come first */
    struct hed_arena arena;
};

static const char *
arena_text(struct hed_arena *a, struct hed_bytes b)
{
    char *s = hed_arena_alloc(a, b.size + 1, 1);

    if (!s)
        return NULL;
    if (b.size)
        memcpy(s, b.data, b.size);
    s[b.size] = '\0';
    return s;
}

int
hed_cubin_describe_kernel(const struct hed_cubin *c, const struct hed_cubin_kernel *k,
                          struct hed_arena *a, struct hed_code_kernel *out)
{
    struct hed_code_param *params = hed_arena_alloc(a, (k->param_count + 1u) * sizeof *params, 8);
    const char *name = arena_text(a, k->name);
    const uint64_t bound = (uint64_t)k->max_threads[0] *
                           (k->max_threads[1] ? k->max_threads[1] : 1) *
                           (k->max_threads[2] ? k->max_threads[2] : 1);

    if (!params || !name)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < k->param_count; i++)
        params[i] = (struct hed_code_param){k->params[i].offset, k->params[i].size};
    *out = (struct hed_code_kernel){
        .name = name,
        .params = params,
        .param_count = k->param_count,
        .param_bytes = k->param_bytes,
        .registers = k->registers ? k->registers : 32,
        .shared = (uint32_t)k->shared,
        .local = (uint32_t)(k->local + k->stack),
        .max_threads = bound < 1024 ? (uint32_t)bound : 0,
        .ptx_version = c->arch.number,
        .binary_version = c->arch.number,
    };
    memcpy(out->required, k->required_threads, sizeof out->required);
    memcpy(out->cluster, k->cluster, sizeof out->cluster);
    return 0;
}

static int
describe_kernels(struct description *d, const struct hed_cubin *c)
{
    struct hed_code_kernel *kernels =
        hed_arena_alloc(&d->arena, (c->kernel_count + 1u) * sizeof *kernels, 8);

    if (!kernels)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < c->kernel_count; i++) {
        const int err = hed_cubin_describe_kernel(c, &c->kernels[i], &d->arena, &kernels[i]);

        if (err != 0)
            return err;
    }
    d->code.kernels = kernels;
    d->code.kernel_count = c->kernel_count;
    return 0;
}

/* Is the symbol a variable? Its section says of which kind. */
static bool
is_variable(const struct hed_elf_file *o, const struct hed_elf_symbol *s,
            struct hed_elf_section *in)
{
    return ELF64_ST_TYPE(s->info) == STT_OBJECT && s->size != 0 && s->name.size != 0 &&
           hed_elf_file_section(o, s->section, in) &&
           (hed_elf_section_is(in, ".nv.global") || hed_elf_section_is(in, ".nv.global.init") ||
            hed_elf_section_is(in, ".nv.constant3"));
}

static int
add_variable(struct description *d, struct hed_code_var *out, const struct hed_elf_symbol *s,
             const struct hed_elf_section *in)
{
    const struct hed_bytes init = hed_bytes_cut(in->bytes, s->value, s->size);
    const char *name = arena_text(&d->arena, s->name);
    unsigned char *first = init.size ? hed_arena_alloc(&d->arena, init.size, 16) : NULL;

    if (!name || (init.size && !first))
        return HED_ENOMEM;
    if (first)
        memcpy(first, init.data, init.size);
    *out = (struct hed_code_var){
        .name = name,
        .size = s->size,
        .align = 256,
        .constant = hed_elf_section_is(in, ".nv.constant3"),
        .managed = (s->other & SYMBOL_MANAGED) != 0,
        .visible = ELF64_ST_BIND(s->info) != STB_LOCAL,
        .init = first,
        .init_size = init.size,
    };
    return 0;
}

/* Relocations in initial values are ignored: nothing runs that could follow the pointers. */
static int
describe_variables(struct description *d, struct hed_bytes cubin)
{
    struct hed_elf_file o;
    struct hed_elf_section table, strings, in;
    struct hed_elf_symbol s;
    uint32_t i = 0, n;

    if (hed_elf_file_read(cubin, &o, NULL) != 0)
        return HED_EFORMAT;
    while (i < o.count && !(hed_elf_file_section(&o, i, &table) && table.type == SHT_SYMTAB))
        i++;
    if (i == o.count || !hed_elf_file_section(&o, table.link, &strings))
        return 0;
    n = hed_elf_file_symbols(&table);

    struct hed_code_var *vars = hed_arena_alloc(&d->arena, (n + (size_t)1) * sizeof *vars, 8);

    if (!vars)
        return HED_ENOMEM;
    d->code.vars = vars;
    for (i = 1; i < n; i++) {
        if (!hed_elf_file_symbol(&table, &strings, i, &s) || !is_variable(&o, &s, &in))
            continue;

        const int err = add_variable(d, &vars[d->code.var_count], &s, &in);

        if (err != 0)
            return err;
        d->code.var_count++;
    }
    return 0;
}

int
hed_cubin_describe(struct hed_bytes cubin, struct hed_code **out, struct hed_why *why)
{
    struct description *d = calloc(1, sizeof *d);
    struct hed_cubin c;

    if (!d)
        return HED_ENOMEM;
    hed_arena_init(&d->arena, DESCRIPTION_MAX);

    int err = hed_cubin_read(cubin, &d->arena, &c, why);

    if (err == 0)
        err = describe_kernels(d, &c);
    if (err == 0)
        err = describe_variables(d, cubin);
    if (err != 0) {
        hed_cubin_forget(&d->code);
        return err;
    }
    *out = &d->code;
    return 0;
}

void
hed_cubin_forget(struct hed_code *code)
{
    struct description *d = (struct description *)code;

    hed_arena_fini(&d->arena);
    free(d);
}
