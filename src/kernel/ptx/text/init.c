/* Initialisers: a list of values in braces becomes an image of bytes, and a list of addresses in
 * it. */
#include "kernel/ptx/text/parser.h"

#include <string.h>

#include "base/number.h"

/* The image of a variable while it is read. */
struct image {
    struct hed_ptx_var *v;
    uint64_t capacity;                       /* bytes allocated in v->init */
    unsigned width;                          /* bytes of an element */
    int levels;                              /* dimensions, a vector being the last */
    uint64_t elements[HED_PTX_DIMS_MAX + 1]; /* in one entry of that level */
    struct hed_ptx_reloc **relocs_end;
};

/* Makes sure that the image holds `size` bytes. */
static void
grow_image(struct hed_ptx_parser *p, struct image *im, uint64_t size)
{
    struct hed_ptx_var *v = im->v;

    if (size > im->capacity) {
        const uint64_t twice = im->capacity * 2 > 64 ? im->capacity * 2 : 64;
        const uint64_t capacity = twice > size ? twice : size;
        unsigned char *bytes = hed_ptx_alloc(p, capacity, 1);

        if (v->init_size)
            memcpy(bytes, v->init, v->init_size);
        v->init = bytes;
        im->capacity = capacity;
    }
    if (size > v->init_size)
        v->init_size = size;
}

static uint64_t
encode_value(struct hed_ptx_parser *p, const struct hed_ptx_value *value, int type)
{
    const double d = hed_ptx_value_double(value);
    const float f = (float)d;
    uint64_t bits = value->bits;
    uint32_t half;

    if (type == HED_PTX_TYPE_F32) {
        if (value->kind == HED_PTX_VALUE_F32)
            return bits;
        memcpy(&half, &f, sizeof(half));
        return half;
    }
    if (type == HED_PTX_TYPE_F64) {
        memcpy(&bits, &d, sizeof(bits));
        return bits;
    }
    if (value->kind != HED_PTX_VALUE_INT &&
        hed_ptx_types[type].bits != (value->kind == HED_PTX_VALUE_F32 ? 32 : 64))
        hed_ptx_fail(p, "Initializer does not fit the type");
    return bits;
}

static struct hed_ptx_reloc *
new_reloc(struct hed_ptx_parser *p, struct image *im, uint64_t at)
{
    struct hed_ptx_reloc *r = hed_ptx_alloc(p, 1, sizeof(*r));

    r->at = at;
    r->bytes = (uint8_t)im->width;
    *im->relocs_end = r;
    im->relocs_end = &r->next;
    return r;
}

/* name, or name + 4; generic( and the mask have been taken. */
static void
take_symbol(struct hed_ptx_parser *p, struct hed_ptx_reloc *r)
{
    struct hed_ptx_name *name = hed_ptx_take_name(p);
    const struct hed_ptx_sym *s = hed_ptx_lookup(p, name);

    if (s && s->kind == HED_PTX_SYM_VAR) {
        r->var = s->var;
    } else if (s && s->kind == HED_PTX_SYM_FUNC) {
        r->func = s->func;
        s->func->address_taken = true;
    } else {
        hed_ptx_fail_name(p, "Unknown symbol '%s'", name->text);
    }
}

static void
take_addend(struct hed_ptx_parser *p, struct hed_ptx_reloc *r)
{
    if (hed_ptx_at(p, '+') || hed_ptx_at(p, '-'))
        r->addend = (int64_t)((uint64_t)r->addend + hed_ptx_take_value(p).bits);
}

static void
take_address(struct hed_ptx_parser *p, struct hed_ptx_reloc *r)
{
    if (p->tok.len == 7 && memcmp(p->tok.text, "generic", 7) == 0) {
        hed_ptx_next(p);
        hed_ptx_expect(p, '(');
        r->generic = true;
        take_symbol(p, r);
        take_addend(p, r);
        hed_ptx_expect(p, ')');
    } else {
        take_symbol(p, r);
    }
    take_addend(p, r);
}

static void
take_element(struct hed_ptx_parser *p, struct image *im, uint64_t index)
{
    uint64_t at;

    if (__builtin_mul_overflow(index, (uint64_t)im->width, &at) ||
        (!im->v->unsized && at + im->width > im->v->size))
        hed_ptx_fail(p, "Too many initializers for '%s'", im->v->name);
    grow_image(p, im, at + im->width);
    if (p->tok.kind == HED_PTX_TOKEN_IDENT &&
        hed_ptx_intern(p, p->tok.text, p->tok.len)->sym == NULL && p->tok.len == 7 &&
        memcmp(p->tok.text, "WARP_SZ", 7) == 0) {
        im->v->init[at] = 32;
        hed_ptx_next(p);
        return;
    }
    if (p->tok.kind == HED_PTX_TOKEN_IDENT) {
        take_address(p, new_reloc(p, im, at));
        return;
    }

    const struct hed_ptx_value value = hed_ptx_take_value(p);

    if (hed_ptx_take(p, '(')) {
        struct hed_ptx_reloc *r = new_reloc(p, im, at);

        r->mask = value.bits;
        take_address(p, r);
        hed_ptx_expect(p, ')');
        return;
    }

    const uint64_t bits = encode_value(p, &value, im->v->type);

    for (unsigned i = 0; i < im->width && i < 8; i++)
        im->v->init[at + i] = (unsigned char)(bits >> (8 * i));
}

/* Takes a list in braces for that level, or single elements if the braces are left out. Returns the
 * index of the next element.
 */
static uint64_t
take_level(struct hed_ptx_parser *p, struct image *im, int level, uint64_t first)
{
    uint64_t index = first;

    if (!hed_ptx_take(p, '{')) {
        take_element(p, im, index);
        return index + 1;
    }
    if (level >= im->levels)
        hed_ptx_fail(p, "Too many braces in the initializer of '%s'", im->v->name);
    while (!hed_ptx_at(p, '}')) {
        const bool nested = hed_ptx_at(p, '{');
        const uint64_t end = take_level(p, im, level + 1, index);

        index = nested ? index + im->elements[level] : end;
        if (!hed_ptx_take(p, ',') && !hed_ptx_at(p, '}'))
            hed_ptx_syntax(p);
    }
    hed_ptx_next(p);
    return index;
}

void
hed_ptx_take_init(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    struct image im = {.v = v, .width = (hed_ptx_types[v->type].bits + 7u) / 8};
    uint64_t n = 1;

    im.relocs_end = &v->relocs;
    im.levels = v->ndims + (v->vec ? 1 : 0);
    v->relocs = NULL;
    v->init_size = 0;
    for (int i = im.levels; i-- > 0;) {
        im.elements[i] = n;
        if (v->vec && i == v->ndims)
            n *= v->vec;
        else if (i > 0 && __builtin_mul_overflow(n, v->dims[i], &n))
            hed_ptx_fail(p, "'%s' is too large", v->name);
    }
    take_level(p, &im, 0, 0);
    if (v->unsized && im.levels > 0 && im.elements[0] > 0) {
        const uint64_t entry = im.elements[0] * im.width;

        v->dims[0] = hed_divide_up(v->init_size, entry);
        v->unsized = false;
        hed_ptx_set_size(p, v);
    }
}
