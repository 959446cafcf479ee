/* Names and scopes: interning names, what a name means in a scope, registers of ranges.
 *
 * Invariants:
 * 1. name->sym is the innermost declaration in scope; `hidden` leads to the ones that it hides.
 * 2. A register of a range is a symbol in the scope of its range. It is made when it is first
 *    mentioned, so a range of a thousand million registers costs as much as a range of one.
 */
#include "kernel/ptx/text/parser.h"

#include <string.h>

#include "base/err.h"

#define FIRST_NAMES 256u

uint32_t
hed_ptx_hash(const char *text, size_t len)
{
    uint64_t h = len * UINT64_C(0x9e3779b97f4a7c15);

    while (len >= 8) {
        uint64_t w;

        memcpy(&w, text, 8);
        h = (h ^ w) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
        text += 8;
        len -= 8;
    }
    if (len > 0) {
        uint64_t w = 0;

        memcpy(&w, text, len);
        h = (h ^ w) * UINT64_C(0xff51afd7ed558ccd);
    }
    return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 17);
}

static void
grow_names(struct hed_ptx_parser *p)
{
    const uint32_t size = p->names_size ? p->names_size * 2 : FIRST_NAMES;
    struct hed_ptx_name **names = hed_ptx_alloc(p, size, sizeof(struct hed_ptx_name *));

    for (uint32_t i = 0; i < p->names_size; i++) {
        if (!p->names[i])
            continue;

        uint32_t at = p->names[i]->hash & (size - 1);

        while (names[at])
            at = (at + 1) & (size - 1);
        names[at] = p->names[i];
    }
    p->names = names;
    p->names_size = size;
}

/* The position of a name in the table, or the empty position where it belongs. */
static uint32_t
find_name_slot(const struct hed_ptx_parser *p, const char *text, size_t len, uint32_t hash)
{
    uint32_t at = hash & (p->names_size - 1);

    for (const struct hed_ptx_name *n; (n = p->names[at]); at = (at + 1) & (p->names_size - 1)) {
        if (n->hash == hash && n->len == len && memcmp(n->text, text, len) == 0)
            break;
    }
    return at;
}

struct hed_ptx_name *
hed_ptx_intern(struct hed_ptx_parser *p, const char *text, size_t len)
{
    const uint32_t hash = hed_ptx_hash(text, len);

    if (p->nnames * 4 >= p->names_size * 3)
        grow_names(p);

    const uint32_t at = find_name_slot(p, text, len, hash);

    if (p->names[at])
        return p->names[at];

    struct hed_ptx_name *n = hed_ptx_alloc(p, 1, sizeof(*n));

    n->text = hed_ptx_copy(p, text, len);
    n->len = (uint32_t)len;
    n->hash = hash;
    p->names[at] = n;
    p->nnames++;
    return n;
}

struct hed_ptx_name *
hed_ptx_take_name(struct hed_ptx_parser *p)
{
    if (p->tok.kind != HED_PTX_TOKEN_IDENT)
        hed_ptx_syntax(p);

    struct hed_ptx_name *n = hed_ptx_intern(p, p->tok.text, p->tok.len);

    p->name_line = p->tok.line;
    p->name_column = p->tok.column;
    hed_ptx_next(p);
    return n;
}

/* Adds a symbol of the scope `depth` to a name, below the symbols of deeper scopes. */
static struct hed_ptx_sym *
add_sym(struct hed_ptx_parser *p, struct hed_ptx_name *name, int kind, uint16_t depth)
{
    struct hed_ptx_sym *s = hed_ptx_alloc(p, 1, sizeof(*s));
    struct hed_ptx_sym **at = &name->sym;

    while (*at && (*at)->depth > depth)
        at = &(*at)->hidden;
    s->kind = (uint8_t)kind;
    s->depth = depth;
    s->name = name;
    s->hidden = *at;
    *at = s;
    s->sibling = p->scopes[depth].syms;
    p->scopes[depth].syms = s;
    return s;
}

struct hed_ptx_sym *
hed_ptx_declare(struct hed_ptx_parser *p, struct hed_ptx_name *name, int kind)
{
    struct hed_ptx_sym *old = name->sym;

    if (old && old->depth == p->depth && old->kind != HED_PTX_SYM_SREG) {
        hed_ptx_error_at(p, p->name_line, p->name_column, "Duplicate definition of '%s'",
                         name->text);
        return NULL;
    }
    return add_sym(p, name, kind, p->depth);
}

void
hed_ptx_declare_range(struct hed_ptx_parser *p, struct hed_ptx_name *name,
                      struct hed_ptx_regs *regs)
{
    if (name->range && name->range->depth == p->depth) {
        hed_ptx_error_at(p, p->name_line, p->name_column, "Duplicate definition of '%s<%u>'",
                         name->text, regs->count);
        return;
    }

    struct hed_ptx_range *r = hed_ptx_alloc(p, 1, sizeof(*r));

    r->regs = regs;
    r->name = name;
    r->depth = p->depth;
    r->hidden = name->range;
    name->range = r;
    r->sibling = p->scopes[p->depth].ranges;
    p->scopes[p->depth].ranges = r;
    if (p->depth > 1)
        p->inner_ranges++;
}

struct hed_ptx_reg *
hed_ptx_new_reg(struct hed_ptx_parser *p, const char *name, const struct hed_ptx_regs *decl)
{
    struct hed_ptx_reg *r = hed_ptx_alloc(p, 1, sizeof(*r));

    r->name = name;
    r->decl = decl;
    r->type = decl->type;
    r->vec = decl->vec;
    r->id = p->func->nregs++;
    *p->regs_end = r;
    p->regs_end = &r->next;
    return r;
}

/* The innermost range with that prefix that has a register with that number. */
static const struct hed_ptx_range *
find_range_of_prefix(const struct hed_ptx_name *prefix, uint64_t number)
{
    for (const struct hed_ptx_range *r = prefix->range; r; r = r->hidden) {
        if (number < r->regs->count)
            return r;
    }
    return NULL;
}

/* %r12 is number 12 of %r<...> or number 2 of %r1<...>: the innermost possible range wins. */
static const struct hed_ptx_range *
find_range(const struct hed_ptx_parser *p, const struct hed_ptx_name *name)
{
    const struct hed_ptx_range *best = NULL;
    uint64_t number = 0;
    uint64_t unit = 1;

    for (uint32_t len = name->len; len > 1 && name->len - len < 10; unit *= 10) {
        const char c = name->text[--len];

        if (c < '0' || c > '9')
            break;
        number += (uint64_t)(c - '0') * unit;
        if (c == '0' && len + 1 < name->len)
            continue; /* numbers have no leading zeros */

        const struct hed_ptx_name *prefix =
            p->names[find_name_slot(p, name->text, len, hed_ptx_hash(name->text, len))];
        const struct hed_ptx_range *r = prefix ? find_range_of_prefix(prefix, number) : NULL;

        if (r && (!best || r->depth > best->depth))
            best = r;
    }
    return best;
}

static struct hed_ptx_sym *
find_sreg(struct hed_ptx_parser *p, struct hed_ptx_name *name)
{
    for (uint32_t i = 0; name->text[0] == '%' && i < HED_PTX_SREGS; i++) {
        if (strcmp(hed_ptx_sregs[i].text, name->text) == 0) {
            struct hed_ptx_sym *s = add_sym(p, name, HED_PTX_SYM_SREG, 0);

            s->sreg = i;
            return s;
        }
    }
    return NULL;
}

struct hed_ptx_sym *
hed_ptx_lookup(struct hed_ptx_parser *p, struct hed_ptx_name *name)
{
    struct hed_ptx_sym *s = name->sym;

    if ((s && p->inner_ranges == 0 && s->depth > 0) || !p->func)
        return s;

    const struct hed_ptx_range *r = find_range(p, name);

    if (r && (!s || s->depth < r->depth)) {
        s = add_sym(p, name, HED_PTX_SYM_REG, r->depth);
        s->reg = hed_ptx_new_reg(p, name->text, r->regs);
    }
    return s ? s : find_sreg(p, name);
}

void
hed_ptx_open_scope(struct hed_ptx_parser *p)
{
    if (p->depth == HED_PTX_DEPTH_MAX) {
        hed_ptx_error_at(p, p->tok.line, p->tok.column, "Scopes are nested too deeply");
        hed_ptx_give_up(p, HED_ELIMIT);
    }
    p->scopes[++p->depth] = (struct hed_ptx_name_scope){0};
}

static bool
resolve_fixup(const struct hed_ptx_fixup *f)
{
    const struct hed_ptx_sym *s = f->name->sym;
    struct hed_ptx_operand o = *f->operand;

    if (s->kind == HED_PTX_SYM_LABEL) {
        o.kind = HED_PTX_OPERAND_LABEL;
        o.label = s->label;
    } else if (s->kind == HED_PTX_SYM_TABLE) {
        o.kind = HED_PTX_OPERAND_TABLE;
        o.table = s->table;
    }
    if (o.kind == HED_PTX_OPERAND_NONE || !hed_ptx_is_wanted(&o, f->want))
        return false;
    *f->operand = o;
    return true;
}

/* A name that is not declared in this scope may still be declared in the enclosing one. */
static void
settle_fixups(struct hed_ptx_parser *p, struct hed_ptx_name_scope *s)
{
    struct hed_ptx_fixup *next;

    for (struct hed_ptx_fixup *f = s->fixups; f; f = next) {
        next = f->next;
        if (f->name->sym && f->name->sym->depth == p->depth && resolve_fixup(f))
            continue;
        if (p->depth > 1) {
            f->next = p->scopes[p->depth - 1].fixups;
            p->scopes[p->depth - 1].fixups = f;
        } else {
            hed_ptx_error_at(p, f->line, f->column, "Unknown symbol '%s'", f->name->text);
        }
    }
}

void
hed_ptx_close_scope(struct hed_ptx_parser *p)
{
    struct hed_ptx_name_scope *s = &p->scopes[p->depth];

    settle_fixups(p, s);
    for (struct hed_ptx_sym *y = s->syms; y; y = y->sibling)
        y->name->sym = y->hidden;
    for (struct hed_ptx_range *r = s->ranges; r; r = r->sibling) {
        r->name->range = r->hidden;
        if (p->depth > 1)
            p->inner_ranges--;
    }
    p->depth--;
}

void
hed_ptx_add_fixup(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    struct hed_ptx_fixup *f = hed_ptx_alloc(p, 1, sizeof(*f));

    /* take_named() in inst.c put these there. */
    f->name = (void *)o->elems;
    f->operand = o;
    f->want = p->want;
    f->line = (uint32_t)(o->offset >> 32);
    f->column = (uint32_t)o->offset;
    o->count = 0;
    o->offset = 0;
    o->elems = NULL;
    f->next = p->scopes[p->depth].fixups;
    p->scopes[p->depth].fixups = f;
}

unsigned
hed_ptx_geom_coordinates(unsigned geom)
{
    switch (geom) {
    case HED_PTX_GEOM_1D:
    case HED_PTX_GEOM_A1D:
        return 1;
    case HED_PTX_GEOM_2D:
    case HED_PTX_GEOM_A2D:
        return 2;
    case HED_PTX_GEOM_3D:
    case HED_PTX_GEOM_CUBE:
    case HED_PTX_GEOM_ACUBE:
        return 3;
    default:
        return 0;
    }
}
