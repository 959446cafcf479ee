/* Addresses that a cubin has, as relocations of its sections: in constants, variables and code. See
 * module.h.
 *
 * The address of a variable becomes known when the program is loaded. That of code is a number that
 * means something only to the calls that compare it.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/device_calls.h"
#include "base/err.h"
#include "base/search.h"
#include "kernel/sass/lift/module.h"
#include "kernel/sass/sass.h"

#define R_CUDA_64 2
#define R_CUDA_G64 4 /* a generic address; addresses of variables are generic */
#define R_CUDA_ABS32_LO_32 56
#define R_CUDA_ABS32_HI_32 57
#define R_CUDA_ABS47_34 58
/* Descriptors of functions: what a pointer to a function holds. Calls compare it, as they do an
 * address. A kernel has one for launches by other kernels. */
#define R_CUDA_FUNC_DESC_64 35
#define R_CUDA_FUNC_DESC32_LO_32 62
#define R_CUDA_FUNC_DESC32_HI_32 63
#define R_CUDA_ABS55_16_34 75 /* since sm_90: its lowest bits are apart */
#define SYMBOL_KERNEL 0x10    /* in st_other */
/* Hints when to switch to another warp do not matter. */
#define R_CUDA_YIELD_OPCODE9_0 68
#define R_CUDA_YIELD_CLEAR_PRED4_87 69

static enum lift_relocation
relocation_of(uint32_t type)
{
    switch (type) {
    case R_CUDA_64:
    case R_CUDA_G64:
    case R_CUDA_FUNC_DESC_64:
        return LIFT_WHOLE;
    case R_CUDA_ABS32_LO_32:
    case R_CUDA_FUNC_DESC32_LO_32:
        return LIFT_LOW;
    case R_CUDA_ABS32_HI_32:
    case R_CUDA_FUNC_DESC32_HI_32:
        return LIFT_HIGH;
    case R_CUDA_ABS47_34:
    case R_CUDA_ABS55_16_34:
        return LIFT_CALL;
    default:
        return LIFT_OTHER;
    }
}

static bool
is_code(const struct hed_elf_section *s)
{
    return s->type == SHT_PROGBITS && hed_elf_section_begins(s, ".text.");
}

static struct lift_address
referent_of(const struct lift_module *m, uint32_t symbol, int64_t addend)
{
    struct lift_address a = {.kind = LIFT_UNKNOWN, .index = symbol, .addend = addend};
    struct hed_elf_section section;
    struct hed_elf_symbol s;

    if (!hed_elf_file_symbol(&m->symbols, &m->strings, symbol, &s))
        return a;
    a.name = s.name;
    if (s.section == SHN_UNDEF) {
        a.kind = LIFT_FUNCTION;
    } else if (s.section < m->elf.count && m->var_of_section[s.section]) {
        const uint32_t var = m->var_of_section[s.section] - 1;

        a.kind = LIFT_VARIABLE;
        a.index = m->managed[symbol] ? m->managed[symbol] - 1 : var;
        if (a.index == var)
            a.addend = (int64_t)((uint64_t)addend + s.value);
    } else if (hed_elf_file_section(&m->elf, s.section, &section) && is_code(&section)) {
        const uint64_t at = (uint64_t)addend + s.value;

        if (at < section.bytes.size && m->elf.bytes.size < LIFT_CODE_BASE) {
            a.kind = LIFT_CODE;
            a.index = s.section;
            a.addend = (int64_t)at;
            a.begins = addend == 0 && ELF64_ST_TYPE(s.info) == STT_FUNC;
            a.is_kernel = (s.other & SYMBOL_KERNEL) != 0;
        }
    }
    return a;
}

/* What the place itself says, where a relocation has no number to add. Compilers leave 0 in
 * instructions: anything else is not known. */
static bool
addend_in_place(const struct hed_elf_section *target, uint64_t at, enum lift_relocation how,
                int64_t *addend)
{
    const uint8_t *p = hed_bytes_at(target->bytes, at, 8);

    if (how == LIFT_WHOLE) {
        *addend = p ? (int64_t)hed_load_u64(p) : 0;
        return true;
    }
    return p && hed_load_u32(p + 4) == 0;
}

/* Linked code has NVIDIA's device runtime in it, which is made for a GPU's system functions. Its
 * functions are called by name instead, as PTX calls them. */
static void
call_device_by_name(struct lift_address *a, uint32_t symbol)
{
    int number;

    if (a->how != LIFT_CALL || a->kind != LIFT_CODE || !a->begins || !a->name.size)
        return;
    number = hed_device_call_find((const char *)a->name.data, a->name.size, true);
    if (number < 0 || hed_device_calls[number].on_stack)
        return;
    a->kind = LIFT_FUNCTION;
    a->index = symbol;
}

/* One relocation of a section. */
static bool
read_address(const struct lift_module *m, const struct hed_elf_section *rel, uint64_t i,
             struct lift_address *out)
{
    const size_t size = rel->type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    const uint8_t *p = hed_bytes_at(rel->bytes, i * size, size);
    struct hed_elf_section target;
    Elf64_Rela x = {0};
    bool known = true;

    if (!p || !hed_elf_file_section(&m->elf, rel->info, &target))
        return false;
    memcpy(&x, p, size);

    const uint32_t type = (uint32_t)ELF64_R_TYPE(x.r_info);
    const enum lift_relocation how = relocation_of(type);

    if (rel->type == SHT_REL)
        known = addend_in_place(&target, x.r_offset, how, &x.r_addend);
    *out = referent_of(m, (uint32_t)ELF64_R_SYM(x.r_info), x.r_addend);
    out->section = rel->info;
    out->at = x.r_offset;
    out->type = type;
    out->how = how;
    call_device_by_name(out, (uint32_t)ELF64_R_SYM(x.r_info));
    if (how == LIFT_OTHER || !known ||
        !hed_range_fits(x.r_offset, how == LIFT_WHOLE ? 8 : HED_SASS_BYTES, target.size) ||
        (how != LIFT_WHOLE && x.r_offset % HED_SASS_BYTES))
        out->kind = LIFT_UNKNOWN;
    return true;
}

/* Is this a table of addresses that lifting wants to know? */
static bool
has_addresses(const struct lift_module *m, const struct hed_elf_section *rel)
{
    struct hed_elf_section s;

    return (rel->type == SHT_REL || rel->type == SHT_RELA) &&
           hed_elf_file_section(&m->elf, rel->info, &s) &&
           (hed_elf_section_begins(&s, ".nv.constant") || m->var_of_section[rel->info] ||
            is_code(&s));
}

static void
add_addresses(struct hed_sass_program *p, const struct hed_elf_section *rel, uint64_t room)
{
    struct lift_module *m = p->inside;
    const uint32_t var = m->var_of_section[rel->info];
    struct lift_address a;

    for (uint64_t i = 0; m->address_count < room && read_address(m, rel, i, &a); i++) {
        if (a.type == R_CUDA_YIELD_OPCODE9_0 || a.type == R_CUDA_YIELD_CLEAR_PRED4_87)
            continue;
        m->addresses[m->address_count++] = a;
        if (!var || a.how != LIFT_WHOLE)
            continue;
        if (a.kind == LIFT_VARIABLE)
            p->pointers[p->pointer_count++] = (struct hed_sass_pointer){
                .var = var - 1, .to = a.index, .at = a.at, .addend = a.addend};
        if (a.kind == LIFT_CODE || a.kind == LIFT_FUNCTION)
            p->pointers[p->pointer_count++] = (struct hed_sass_pointer){
                .var = var - 1,
                .to = HED_SASS_NUMBER,
                .at = a.at,
                .addend = a.kind == LIFT_CODE ? hed_lift_code_number(m, a.index, a.addend)
                                              : LIFT_FUNCTION_NUMBER(a.index)};
    }
}

static int
compare_addresses(const void *a, const void *b)
{
    const struct lift_address *x = a, *y = b;

    return hed_compare_pairs(x->section, x->at, y->section, y->at);
}

int
hed_lift_compare_pointers(const void *a, const void *b)
{
    const struct hed_sass_pointer *x = a, *y = b;

    return hed_compare_pairs(x->var, x->at, y->var, y->at);
}

static int
compare_taken(const void *a, const void *b)
{
    const struct lift_place *x = a, *y = b;

    return hed_compare_pairs(x->section, x->at, y->section, y->at);
}

/* A call by address may go to any of these. A return address is none: it is behind a call. A
 * kernel is launched by its address, never called. */
static void
find_taken(struct lift_module *m)
{
    struct lift_place *t = m->taken;
    struct hed_elf_section s;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->address_count; i++) {
        const struct lift_address *a = &m->addresses[i];

        if (a->kind == LIFT_CODE && a->begins && !a->is_kernel &&
            (a->how == LIFT_WHOLE || a->how == LIFT_LOW))
            t[n++] = (struct lift_place){.section = a->index, .at = (uint64_t)a->addend};
    }
    qsort(t, n, sizeof *t, compare_taken);
    for (uint32_t i = 0; i < n; i++) {
        const struct lift_place *last = m->taken_count ? &t[m->taken_count - 1] : NULL;

        if (last && compare_taken(last, &t[i]) == 0)
            continue;
        if ((!last || last->section != t[i].section) &&
            hed_elf_file_section(&m->elf, t[i].section, &s))
            m->taken_bytes += s.bytes.size;
        t[m->taken_count++] = t[i];
    }
}

/* NULL if the arena has no room for so many. */
static void *
alloc_addresses(struct hed_arena *arena, uint64_t n, size_t size)
{
    if (n >= (arena->ceiling - arena->used) / size)
        return NULL;
    return hed_arena_alloc(arena, (size_t)(n + 1) * size, _Alignof(max_align_t));
}

int
hed_lift_read_addresses(struct hed_sass_program *p, struct hed_arena *arena, struct hed_why *why)
{
    struct lift_module *m = p->inside;
    struct hed_elf_section s;
    uint64_t n = 0, bytes = 0;

    for (uint32_t i = 0; i < m->elf.count; i++)
        if (hed_elf_file_section(&m->elf, i, &s) && has_addresses(m, &s)) {
            n += s.bytes.size / sizeof(Elf64_Rel);
            bytes += s.bytes.size;
        }
    if (bytes > m->elf.bytes.size) {
        hed_why_set(why, "the relocations of the cubin overlap");
        return HED_EFORMAT;
    }
    m->addresses = alloc_addresses(arena, n, sizeof *m->addresses);
    p->pointers = alloc_addresses(arena, n, sizeof *p->pointers);
    m->taken = alloc_addresses(arena, n, sizeof *m->taken);
    if (!m->addresses || !p->pointers || !m->taken)
        return HED_ELIMIT;
    for (uint32_t i = 0; i < m->elf.count; i++)
        if (hed_elf_file_section(&m->elf, i, &s) && has_addresses(m, &s))
            add_addresses(p, &s, n);
    qsort(m->addresses, m->address_count, sizeof *m->addresses, compare_addresses);
    qsort(p->pointers, p->pointer_count, sizeof *p->pointers, hed_lift_compare_pointers);
    find_taken(m);
    return 0;
}

/* The first address at a place of a section or behind it. */
static uint32_t
first_address(const struct lift_address *all, uint32_t count, uint32_t section, uint64_t at)
{
    const struct lift_address key = {.section = section, .at = at};

    return (uint32_t)hed_lower_bound(&key, all, count, sizeof key, compare_addresses);
}

const struct lift_address *
hed_lift_addresses(const struct lift_module *m, uint32_t section, uint32_t *count)
{
    const uint32_t first = first_address(m->addresses, m->address_count, section, 0);
    const uint32_t end = first_address(m->addresses, m->address_count, section + 1, 0);

    *count = end - first;
    return &m->addresses[first];
}

struct lift_address
hed_lift_address(const struct lift_bank *bank, uint64_t offset)
{
    const uint32_t i = first_address(bank->addresses, bank->count, bank->section, offset);

    if (i < bank->count && bank->addresses[i].at == offset)
        return bank->addresses[i];
    return (struct lift_address){.kind = LIFT_NUMBER, .at = offset};
}

uint32_t
hed_lift_code_number(const struct lift_module *m, uint32_t section, uint64_t at)
{
    struct hed_elf_section s;

    return hed_elf_file_section(&m->elf, section, &s) ? LIFT_CODE_BASE + (uint32_t)(s.start + at)
                                                      : 0;
}

uint32_t
hed_sass_kernel_at(const struct hed_sass_program *p, uint64_t address)
{
    const struct lift_module *m = p->inside;
    struct hed_elf_section s;

    for (uint32_t i = 0; i < m->elf.count && address >= LIFT_CODE_BASE; i++) {
        if (!hed_elf_file_section(&m->elf, i, &s) || !is_code(&s) ||
            s.start != address - LIFT_CODE_BASE)
            continue;
        for (uint32_t k = 0; k < p->cubin.kernel_count; k++)
            if (hed_lift_is_named(&s, ".text.", p->cubin.kernels[k].name))
                return k;
    }
    return UINT32_MAX;
}
