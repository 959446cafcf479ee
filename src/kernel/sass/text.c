/* The sections of a cubin that hold code, and their listing. See text.h. */
#include "kernel/sass/text.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/search.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/elf.h"
#include "kernel/sass/sass.h"

#define LINE_MAX_BYTES ((size_t)1 << 16) /* a line contains at most two names */
#define GUARD_COLUMNS 19                 /* between the address and the name of the instruction */

/* Relocations that are written with their symbol. */
#define R_CUDA_ABS32_LO_32 0x38
#define R_CUDA_ABS32_HI_32 0x39
#define R_CUDA_ABS47_34 0x3a
#define R_CUDA_ABS55_16_34 0x4b
#define R_CUDA_CONST_FIELD19_40 0x40
#define R_CUDA_CONST_FIELD21_38 0x42
#define R_CUDA_ABS24_40 0x4a

static const char prefix[] = ".text.";

/* ---- sections -------------------------------------------------------------------------------- */

struct text_reader {
    struct hed_elf_file o;
    struct hed_elf_section table, strings;
    struct hed_arena *arena;
};

static void *
alloc_array(struct hed_arena *arena, uint64_t n, size_t size)
{
    if (n > (arena->ceiling - arena->used) / size)
        return NULL;
    return hed_arena_alloc(arena, (size_t)n * size, _Alignof(max_align_t));
}

/* By section, then by address. */
static int
compare_names(const void *a, const void *b)
{
    const struct hed_sass_name *x = a, *y = b;

    return hed_compare_pairs(x->section, x->at, y->section, y->at);
}

static bool
is_function(const struct text_reader *r, uint32_t i, struct hed_elf_symbol *symbol)
{
    return hed_elf_file_symbol(&r->table, &r->strings, i, symbol) &&
           (symbol->info & 0xf) == STT_FUNC && symbol->section != SHN_UNDEF;
}

static int
read_functions(const struct text_reader *r, struct hed_sass_name **out, uint32_t *count)
{
    const uint32_t symbols = hed_elf_file_symbols(&r->table);
    struct hed_elf_symbol s;
    uint32_t n = 0;

    for (uint32_t i = 0; i < symbols; i++)
        n += is_function(r, i, &s);
    *count = 0;
    *out = alloc_array(r->arena, n, sizeof **out);
    if (!*out)
        return HED_ELIMIT;
    for (uint32_t i = 0; i < symbols; i++) {
        if (is_function(r, i, &s))
            (*out)[(*count)++] =
                (struct hed_sass_name){.section = s.section, .at = s.value, .name = s.name};
    }
    qsort(*out, *count, sizeof **out, compare_names);
    return 0;
}

/* One entry of a section of relocations; both kinds begin alike. */
static bool
read_relocation(const struct text_reader *r, const struct hed_elf_section *s, uint64_t i,
                struct hed_sass_name *out)
{
    const size_t size = s->type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    const uint8_t *p = hed_bytes_at(s->bytes, i * size, size);
    struct hed_elf_symbol symbol;
    Elf64_Rela x = {0};

    if (!p)
        return false;
    memcpy(&x, p, size);
    *out = (struct hed_sass_name){.section = s->info,
                                  .at = x.r_offset,
                                  .type = (uint32_t)ELF64_R_TYPE(x.r_info),
                                  .addend = x.r_addend};
    if (hed_elf_file_symbol(&r->table, &r->strings, (uint32_t)ELF64_R_SYM(x.r_info), &symbol))
        out->name = symbol.name;
    return true;
}

static bool
is_relocations(const struct text_reader *r, uint32_t i, struct hed_elf_section *s)
{
    return hed_elf_file_section(&r->o, i, s) && (s->type == SHT_REL || s->type == SHT_RELA);
}

static int
read_relocations(const struct text_reader *r, struct hed_sass_name **out, uint32_t *count)
{
    struct hed_elf_section s;
    uint64_t n = 0;

    for (uint32_t i = 0; i < r->o.count; i++) {
        if (is_relocations(r, i, &s))
            n += s.bytes.size / sizeof(Elf64_Rel);
    }
    *count = 0;
    *out = n <= UINT32_MAX ? alloc_array(r->arena, n, sizeof **out) : NULL;
    if (!*out)
        return HED_ELIMIT;
    for (uint32_t i = 0; i < r->o.count; i++) {
        if (!is_relocations(r, i, &s))
            continue;
        for (uint64_t j = 0; *count < n && read_relocation(r, &s, j, &(*out)[*count]); j++)
            ++*count;
    }
    qsort(*out, *count, sizeof **out, compare_names);
    return 0;
}

/* The index of the first name at or after a place; count if there is none. */
static uint32_t
find_name_from(const struct hed_sass_name *names, uint32_t count, uint32_t section, uint64_t at)
{
    const struct hed_sass_name key = {.section = section, .at = at};

    return (uint32_t)hed_lower_bound(&key, names, count, sizeof key, compare_names);
}

/* The names of one section. */
static uint32_t
names_of(struct hed_sass_name *all, uint32_t count, uint32_t section, struct hed_sass_name **out)
{
    const uint32_t from = find_name_from(all, count, section, 0);
    uint32_t n = 0;

    while (from + n < count && all[from + n].section == section)
        n++;
    *out = all + from;
    return n;
}

static bool
find_text_symbols(struct text_reader *r)
{
    for (uint32_t i = 0; i < r->o.count; i++) {
        if (hed_elf_file_section(&r->o, i, &r->table) && r->table.type == SHT_SYMTAB)
            return hed_elf_file_section(&r->o, r->table.link, &r->strings);
    }
    return false;
}

static int
list_code(const struct text_reader *r, struct hed_sass_code **out, uint32_t *count)
{
    struct hed_sass_name *functions, *relocations;
    uint32_t function_count, relocation_count;
    struct hed_elf_section s;
    uint32_t n = 0;
    struct hed_sass_code *all = alloc_array(r->arena, r->o.count, sizeof *all);

    if (!all || read_functions(r, &functions, &function_count) != 0 ||
        read_relocations(r, &relocations, &relocation_count) != 0)
        return HED_ELIMIT;
    for (uint32_t i = 0; i < r->o.count; i++) {
        if (!hed_elf_file_section(&r->o, i, &s) || !hed_elf_section_begins(&s, prefix))
            continue;

        struct hed_sass_code *c = &all[n++];

        *c = (struct hed_sass_code){.name = hed_bytes_from(s.name, sizeof prefix - 1),
                                    .bytes = s.bytes};
        c->function_count = names_of(functions, function_count, i, &c->functions);
        c->relocation_count = names_of(relocations, relocation_count, i, &c->relocations);
    }
    *out = all;
    *count = n;
    return 0;
}

int
hed_sass_sections(struct hed_bytes cubin, struct hed_arena *arena, struct hed_sass_code **out,
                  uint32_t *count, struct hed_why *why)
{
    struct text_reader r = {.arena = arena};
    struct hed_arch arch = {.number = 80};
    int err = hed_elf_file_read(cubin, &r.o, why);

    if (err != 0)
        return err;
    if (r.o.machine != HED_ELF_CUDA) {
        hed_why_set(why, "not a cubin: an ELF file for machine %u", r.o.machine);
        return HED_ENOTSUP;
    }
    (void)hed_cubin_arch(cubin, &arch, NULL); /* one that it does not name is read as sm_80 */
    if (!find_text_symbols(&r)) {
        hed_why_set(why, "the cubin has no table of symbols");
        return HED_EFORMAT;
    }
    err = list_code(&r, out, count);
    if (err != 0)
        hed_why_set(why, "the tables of the cubin are too large");
    for (uint32_t i = 0; err == 0 && i < *count; i++)
        (*out)[i].arch = arch.number;
    return err;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    const struct hed_sass_code *code;
    uint64_t count;   /* of instructions */
    uint32_t *labels; /* [count]: 1 + the number of the label, or 0 */
    struct hed_buf line, text, symbol;
    hed_sass_line_fn fn;
    void *arg;
    int err; /* of the first line that could not be made */
};

/* The first name at an address; names are those of one section. */
static const struct hed_sass_name *
find_name_at(const struct hed_sass_name *names, uint32_t count, uint64_t at)
{
    const uint32_t i = count ? find_name_from(names, count, names[0].section, at) : 0;

    return i < count && names[i].at == at ? &names[i] : NULL;
}

static void
add_name(struct hed_buf *b, struct hed_bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        const uint8_t c = name.data[i];

        hed_buf_add(b, c < 0x20 || c == 0x7f ? (const uint8_t *)"?" : &c, 1);
    }
}

static bool
instruction_at(const struct listing *l, uint64_t i, struct hed_sass_inst *inst)
{
    return hed_sass_decode(l->code->arch, l->code->bytes.data + i * HED_SASS_BYTES, inst) == 0;
}

/* Numbers the places that branches go to, in the order of their addresses. */
static void
number_labels(struct listing *l)
{
    struct hed_sass_inst inst;
    uint64_t target;
    uint32_t n = 0;

    memset(l->labels, 0, l->count * sizeof *l->labels);
    for (uint64_t i = 0; i < l->count; i++) {
        if (instruction_at(l, i, &inst) && hed_sass_target(&inst, i * HED_SASS_BYTES, &target) &&
            target % HED_SASS_BYTES == 0 && target / HED_SASS_BYTES < l->count &&
            !find_name_at(l->code->functions, l->code->function_count, target))
            l->labels[target / HED_SASS_BYTES] = 1;
    }
    for (uint64_t i = 0; i < l->count; i++) {
        if (l->labels[i])
            l->labels[i] = ++n;
    }
}

static bool
put_label(void *arg, uint64_t address, struct hed_buf *out)
{
    const struct listing *l = arg;
    const struct hed_sass_name *f =
        find_name_at(l->code->functions, l->code->function_count, address);

    if (f) {
        hed_buf_addf(out, "`(");
        add_name(out, f->name);
        hed_buf_addf(out, ")");
        return true;
    }
    if (address % HED_SASS_BYTES || address / HED_SASS_BYTES >= l->count)
        return false;
    hed_buf_addf(out, "`(.L_x_%" PRIu32 ")", l->labels[address / HED_SASS_BYTES] - 1);
    return true;
}

/* What is written for a relocation; "" for one that is not written. */
static void
name_relocation(struct hed_buf *b, const struct hed_sass_name *r)
{
    hed_buf_reset(b);
    switch (r ? r->type : 0) {
    case R_CUDA_ABS32_LO_32:
        hed_buf_addf(b, "32@lo(");
        break;
    case R_CUDA_ABS32_HI_32:
        hed_buf_addf(b, "32@hi(");
        break;
    case R_CUDA_ABS47_34:
    case R_CUDA_ABS55_16_34:
    case R_CUDA_CONST_FIELD19_40:
    case R_CUDA_CONST_FIELD21_38:
    case R_CUDA_ABS24_40:
        hed_buf_addf(b, "`(");
        break;
    default:
        return;
    }
    if (r->addend)
        hed_buf_addf(b, "(");
    add_name(b, r->name);
    if (r->addend && (r->type == R_CUDA_ABS32_LO_32 || r->type == R_CUDA_ABS32_HI_32))
        hed_buf_addf(b, " + 0x%" PRIx64 "@srel)", (uint64_t)r->addend);
    else if (r->addend)
        hed_buf_addf(b, " + %s0x%" PRIx64 ")", r->addend < 0 ? "-" : "",
                     r->addend < 0 ? 0 - (uint64_t)r->addend : (uint64_t)r->addend);
    hed_buf_addf(b, ")");
}

static void
list_instruction(struct listing *l, uint64_t at, const struct hed_sass_inst *inst)
{
    name_relocation(&l->symbol, find_name_at(l->code->relocations, l->code->relocation_count, at));

    const struct hed_sass_naming naming = {
        .label = put_label, .arg = l, .symbol = l->symbol.size ? hed_buf_cstr(&l->symbol) : NULL};

    hed_buf_reset(&l->text);
    hed_sass_print(inst, at, &naming, &l->text);
    if (!l->err)
        l->err = l->symbol.err ? l->symbol.err : l->text.err;

    const char *text = hed_buf_cstr(&l->text);
    const size_t guard = text[0] == '@' ? strcspn(text, " ") + 1 : 0;

    hed_buf_addf(&l->line, "        /*%04" PRIx64 "*/%*.*s%s ;", at, GUARD_COLUMNS, (int)guard,
                 text, text + guard);
}

static void
end_line(struct listing *l)
{
    if (!l->err)
        l->err = l->line.err;
    if (!l->err)
        l->fn(l->arg, hed_buf_cstr(&l->line));
    hed_buf_reset(&l->line);
}

static bool
list_place(struct listing *l, uint64_t i)
{
    const uint64_t at = i * HED_SASS_BYTES;
    const struct hed_sass_code *c = l->code;
    const struct hed_sass_name *f = find_name_at(c->functions, c->function_count, at);
    const uint8_t *p = c->bytes.data + at;
    struct hed_sass_inst inst;

    for (; f && f < c->functions + c->function_count && f->at == at; f++) {
        add_name(&l->line, f->name);
        hed_buf_addf(&l->line, ":");
        end_line(l);
    }
    if (l->labels[i]) {
        hed_buf_addf(&l->line, ".L_x_%" PRIu32 ":", l->labels[i] - 1);
        end_line(l);
    }

    const bool known = instruction_at(l, i, &inst);

    if (known)
        list_instruction(l, at, &inst);
    else
        hed_buf_addf(&l->line, "        /*%04" PRIx64 "*/%*s.dword 0x%016" PRIx64 ", 0x%016" PRIx64,
                     at, GUARD_COLUMNS, "", hed_load_u64(p), hed_load_u64(p + 8));
    end_line(l);
    return known;
}

int64_t
hed_sass_list(const struct hed_sass_code *code, struct hed_arena *arena, hed_sass_line_fn fn,
              void *arg)
{
    struct listing l = {
        .code = code, .count = code->bytes.size / HED_SASS_BYTES, .fn = fn, .arg = arg};
    int64_t unknown = 0;

    l.labels = alloc_array(arena, l.count, sizeof *l.labels);
    if (!l.labels)
        return HED_ELIMIT;
    hed_buf_init(&l.line, LINE_MAX_BYTES);
    hed_buf_init(&l.text, LINE_MAX_BYTES);
    hed_buf_init(&l.symbol, LINE_MAX_BYTES);
    number_labels(&l);
    for (uint64_t i = 0; i < l.count && !l.err; i++)
        unknown += !list_place(&l, i);
    hed_buf_fini(&l.line);
    hed_buf_fini(&l.text);
    hed_buf_fini(&l.symbol);
    return l.err ? l.err : unknown;
}
