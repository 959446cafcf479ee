/* Makes one piece of code of a kernel and the functions that it can reach in other sections. See
 * module.h.
 *
 *   CALL.ABS of a function         CALL.REL, since it is in the same code now
 *   MOV of half an address         of code: the number that stands for it
 *                                  of anything else: noted, for whoever lifts the instruction
 *   CALL.ABS of a register         any function whose address a variable or an instruction has
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "kernel/sass/lift/module.h"
#include "kernel/sass/sass.h"

#define LINKED_MAX (1u << 24) /* bytes of code */
#define TAKEN_MAX (1u << 20)  /* bytes of functions that may be called by their address */
#define OPCODE_BITS 0xfffu
#define MOV_NUMBER 0x802u
#define UMOV_NUMBER 0x882u
#define CALL_ABS 0x943u
#define CALL_ABS_BY_REG 0x343u
#define CALL_REL 0x944u

struct linker {
    const struct lift_module *m;
    struct lift_code *code;
    uint64_t size; /* bytes of all pieces */
    uint32_t address_count;
    bool splits; /* the lowest bits of a displacement are apart */
    struct hed_why *why;
};

static uint32_t
opcode_at(const uint8_t *inst)
{
    return hed_load_u32(inst) & OPCODE_BITS;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The code of a section: whole instructions. */
static struct hed_bytes
code_of_section(const struct lift_module *m, uint32_t section, uint64_t *start)
{
    struct hed_elf_section s;

    if (!hed_elf_file_section(&m->elf, section, &s))
        return (struct hed_bytes){NULL, 0};
    *start = s.start;
    return hed_bytes_cut(s.bytes, 0, s.bytes.size / HED_SASS_BYTES * HED_SASS_BYTES);
}

static int
add_piece(struct linker *k, uint32_t section)
{
    struct lift_code *c = k->code;
    uint64_t start = 0;
    const struct hed_bytes bytes = code_of_section(k->m, section, &start);

    if (k->code->piece_of[section])
        return 0;
    if (bytes.size > LINKED_MAX - k->size) {
        hed_why_set(k->why, "machine code: the kernel calls too many functions");
        return HED_ELIMIT;
    }
    c->pieces[c->piece_count++] = (struct lift_piece){.section = section,
                                                      .base = (uint32_t)k->size,
                                                      .size = (uint32_t)bytes.size,
                                                      .start = start};
    k->code->piece_of[section] = c->piece_count;
    k->size += bytes.size;
    return 0;
}

/* Can this instruction have an address of that kind? */
static bool
takes_address(const uint8_t *inst, const struct lift_address *a)
{
    const uint32_t opcode = opcode_at(inst);

    switch (a->how) {
    case LIFT_LOW:
    case LIFT_HIGH:
        return opcode == MOV_NUMBER || opcode == UMOV_NUMBER;
    case LIFT_CALL:
        return opcode == CALL_ABS && (a->kind == LIFT_CODE || a->kind == LIFT_FUNCTION);
    default:
        return false;
    }
}

/* Adds the functions that the piece calls by name. */
static int
follow_piece(struct linker *k, const struct lift_piece *piece)
{
    uint64_t start;
    const struct hed_bytes bytes = code_of_section(k->m, piece->section, &start);
    uint32_t count;
    const struct lift_address *a = hed_lift_addresses(k->m, piece->section, &count);

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *inst = hed_bytes_at(bytes, a[i].at, HED_SASS_BYTES);

        if (!inst || a[i].kind == LIFT_UNKNOWN || !takes_address(inst, &a[i])) {
            hed_why_set(k->why, "machine code: a relocation of type %u: the cubin has to be linked",
                        a[i].type);
            return HED_ENOTSUP;
        }
        if (a[i].how == LIFT_CALL && a[i].kind == LIFT_CODE) {
            const int err = add_piece(k, a[i].index);

            if (err)
                return err;
        }
    }
    k->address_count += count;
    return 0;
}

static bool
calls_by_address(const struct linker *k, const struct lift_piece *piece)
{
    uint64_t start;
    const struct hed_bytes bytes = code_of_section(k->m, piece->section, &start);

    for (size_t at = 0; at < bytes.size; at += HED_SASS_BYTES)
        if (opcode_at(bytes.data + at) == CALL_ABS_BY_REG)
            return true;
    return false;
}

/* Adds the functions whose addresses are taken somewhere, once something calls by address. */
static int
add_taken(struct linker *k)
{
    if (k->m->taken_bytes > TAKEN_MAX) {
        k->code->taken_left_out = true;
        return 0;
    }
    for (uint32_t i = 0; i < k->m->taken_count; i++) {
        const int err = add_piece(k, k->m->taken[i].section);

        if (err)
            return err;
    }
    return 0;
}

static int
find_pieces(struct linker *k, uint32_t section)
{
    bool has_taken = k->m->taken_count == 0;
    int err = add_piece(k, section);

    for (uint32_t i = 0; i < k->code->piece_count && !err; i++) {
        err = follow_piece(k, &k->code->pieces[i]);
        if (!err && !has_taken && calls_by_address(k, &k->code->pieces[i])) {
            has_taken = true;
            err = add_taken(k);
        }
    }
    return err;
}

/* ---- one piece of code ----------------------------------------------------------------------- */

static void
patch_word(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

/* CALL.ABS to CALL.REL: a distance from the next instruction, at bit 32. Since sm_90 its lowest
 * bits are at 16. */
static void
make_call_relative(uint8_t *inst, uint32_t at, uint32_t to, bool split)
{
    uint64_t by = (uint64_t)((int64_t)to - (int64_t)at - HED_SASS_BYTES);

    patch_word(inst, (hed_load_u32(inst) & ~OPCODE_BITS) | CALL_REL);
    if (split) {
        inst[2] = (uint8_t)(by / 4);
        by = (uint64_t)((int64_t)by >> 8) & ~UINT64_C(3);
    }
    patch_word(inst + 4, (uint32_t)by);
    patch_word(inst + 8, (hed_load_u32(inst + 8) & ~0x3ffffu) | (uint32_t)(by >> 32 & 0x3ffff));
}

static void
fill_address(struct linker *k, const struct lift_piece *piece, const struct lift_address *a)
{
    struct lift_code *c = k->code;
    const uint32_t at = piece->base + (uint32_t)a->at;
    uint8_t *inst = c->linked + at;

    if (a->kind != LIFT_CODE)
        c->patches[c->patch_count++] = (struct lift_patch){.at = at / HED_SASS_BYTES, .to = *a};
    else if (a->how == LIFT_CALL)
        make_call_relative(inst, at,
                           c->pieces[k->code->piece_of[a->index] - 1].base + (uint32_t)a->addend,
                           k->splits);
    else
        patch_word(inst + 4, a->how == LIFT_LOW
                                 ? hed_lift_code_number(k->m, a->index, (uint64_t)a->addend)
                                 : 0);
}

static int
join_code(struct linker *k)
{
    struct lift_code *c = k->code;

    c->linked = malloc(k->size + 1);
    c->patches = malloc((k->address_count + (size_t)1) * sizeof *c->patches);
    if (!c->linked || !c->patches)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const struct lift_piece *piece = &c->pieces[i];
        uint64_t start;
        const struct hed_bytes bytes = code_of_section(k->m, piece->section, &start);
        uint32_t count;
        const struct lift_address *a = hed_lift_addresses(k->m, piece->section, &count);

        if (bytes.size)
            memcpy(c->linked + piece->base, bytes.data, bytes.size);
        for (uint32_t n = 0; n < count; n++)
            fill_address(k, piece, &a[n]);
    }
    c->bytes = (struct hed_bytes){c->linked, (size_t)k->size};
    return 0;
}

/* The functions that can be called by their address: those of pieces that are here. */
static int
list_taken(struct linker *k)
{
    struct lift_code *c = k->code;

    c->taken = malloc((k->m->taken_count + (size_t)1) * sizeof *c->taken);
    if (!c->taken)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < k->m->taken_count; i++) {
        const struct lift_place *t = &k->m->taken[i];
        const uint32_t piece = k->code->piece_of[t->section];

        if (piece && t->at % HED_SASS_BYTES == 0 && t->at < c->pieces[piece - 1].size)
            c->taken[c->taken_count++] =
                (c->pieces[piece - 1].base + (uint32_t)t->at) / HED_SASS_BYTES;
    }
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Records of the functions: where their indirect branches go. */
static void
find_info(struct linker *k)
{
    static const char prefix[] = ".nv.info.";
    struct hed_elf_section s, text;

    for (uint32_t i = 0; i < k->m->elf.count; i++) {
        if (!hed_elf_file_section(&k->m->elf, i, &s) || !hed_elf_section_begins(&s, prefix) ||
            s.info >= k->m->elf.count || !k->code->piece_of[s.info] ||
            !hed_elf_file_section(&k->m->elf, s.info, &text))
            continue;
        k->code->pieces[k->code->piece_of[s.info] - 1].info = s.bytes;
    }
}

static int
link_pieces(struct linker *k, uint32_t section)
{
    int err = find_pieces(k, section);

    if (!err)
        err = list_taken(k);
    if (err)
        return err;
    find_info(k);
    if (k->code->piece_count > 1 || k->address_count)
        return join_code(k);
    k->code->bytes = code_of_section(k->m, section, &k->code->pieces[0].start);
    return 0;
}

int
hed_lift_link(const struct hed_sass_program *p, uint32_t section, struct lift_code *code,
              struct hed_why *why)
{
    struct linker k = {
        .m = p->inside, .code = code, .splits = p->cubin.arch.number >= LIFT_HOPPER, .why = why};
    int err = HED_ENOMEM;

    code->section_count = k.m->elf.count;
    code->piece_of = calloc(k.m->elf.count + (size_t)1, sizeof *code->piece_of);
    code->pieces = calloc(k.m->elf.count + (size_t)1, sizeof *code->pieces);
    if (code->piece_of && code->pieces)
        err = link_pieces(&k, section);
    return err;
}

void
hed_lift_code_fini(struct lift_code *code)
{
    free(code->linked);
    free(code->piece_of);
    free(code->pieces);
    free(code->patches);
    free(code->taken);
}

/* ---- questions ------------------------------------------------------------------------------- */

const struct lift_piece *
hed_lift_piece_of_section(const struct lift_code *code, uint32_t section)
{
    const uint32_t piece = section < code->section_count ? code->piece_of[section] : 0;

    return piece ? &code->pieces[piece - 1] : NULL;
}

const struct lift_piece *
hed_lift_piece(const struct lift_code *code, uint32_t index)
{
    uint32_t low = 0, high = code->piece_count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (code->pieces[middle].base / HED_SASS_BYTES <= index)
            low = middle;
        else
            high = middle;
    }
    return &code->pieces[low];
}

uint32_t
hed_lift_place_number(const struct lift_code *code, uint32_t index)
{
    const struct lift_piece *p = hed_lift_piece(code, index);

    return LIFT_CODE_BASE + (uint32_t)p->start + index * HED_SASS_BYTES - p->base;
}

static int
compare_patch(const void *index, const void *patch)
{
    return hed_compare_u32(index, &((const struct lift_patch *)patch)->at);
}

/* A cubin may have several relocations of one instruction: the first one is meant. */
const struct lift_patch *
hed_lift_patch(const struct lift_code *code, uint32_t index)
{
    const size_t i = hed_lower_bound(&index, code->patches, code->patch_count,
                                     sizeof *code->patches, compare_patch);

    return i < code->patch_count && code->patches[i].at == index ? &code->patches[i] : NULL;
}
