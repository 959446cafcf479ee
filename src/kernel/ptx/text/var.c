/* Variables and parameters: space, alignment, type, dimensions. Initialisers are in init.c. */
#include "kernel/ptx/text/parser.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define ALIGN_MAX 4096u /* bytes; no driver allows more */

static const char *const type_texts[] = {
    [0] = "",
#define TYPE(name, text, bits, kind) text,
#include "kernel/ptx/words.def"
};

static const char *const space_texts[] = {
    [0] = "",
#define SPACE(name, text) text,
#include "kernel/ptx/words.def"
};

static int
find_word(const struct hed_ptx_parser *p, const char *const *texts, int count)
{
    if (p->tok.kind != HED_PTX_TOKEN_DOT)
        return 0;
    for (int i = 1; i < count; i++) {
        if (p->tok.text[0] == texts[i][0] && strlen(texts[i]) == p->tok.len &&
            memcmp(p->tok.text, texts[i], p->tok.len) == 0)
            return i;
    }
    return 0;
}

int
hed_ptx_type_at(const struct hed_ptx_parser *p)
{
    return find_word(p, type_texts, sizeof(type_texts) / sizeof(type_texts[0]));
}

int
hed_ptx_space_at(const struct hed_ptx_parser *p)
{
    return find_word(p, space_texts, sizeof(space_texts) / sizeof(space_texts[0]));
}

static uint32_t
take_align(struct hed_ptx_parser *p)
{
    const uint64_t n = hed_ptx_take_u32(p);

    if (n == 0 || (n & (n - 1)) != 0 || n > ALIGN_MAX)
        hed_ptx_fail(p, "Illegal alignment: %llu", (unsigned long long)n);
    return (uint32_t)n;
}

static uint8_t
take_vec(struct hed_ptx_parser *p)
{
    for (int n = 2; n <= 8; n *= 2) {
        const char text[3] = {'v', (char)('0' + n), '\0'};

        if (hed_ptx_take_dot(p, text))
            return (uint8_t)n;
    }
    return 0;
}

/* .attribute(.managed, .unified(a, b)) */
static void
take_attributes(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    hed_ptx_expect(p, '(');
    do {
        if (hed_ptx_take_dot(p, "managed")) {
            v->managed = true;
        } else if (hed_ptx_take_dot(p, "unified")) {
            hed_ptx_expect(p, '(');
            v->uuid[0] = hed_ptx_take_value(p).bits;
            hed_ptx_expect(p, ',');
            v->uuid[1] = hed_ptx_take_value(p).bits;
            hed_ptx_expect(p, ')');
            v->has_uuid = true;
        } else {
            hed_ptx_syntax(p);
        }
    } while (hed_ptx_take(p, ','));
    hed_ptx_expect(p, ')');
}

/* .ptr .global .align 16, after the type of a kernel's parameter */
static void
take_ptr(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    v->is_ptr = true;
    v->ptr_space = (uint8_t)hed_ptx_space_at(p);
    if (v->ptr_space)
        hed_ptx_next(p);
    if (hed_ptx_take_dot(p, "align"))
        v->ptr_align = take_align(p);
}

/* Takes everything in front of the name, in any order. */
static void
take_prefix(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    for (;;) {
        const int type = hed_ptx_type_at(p);
        const uint8_t vec = take_vec(p);

        if (vec) {
            v->vec = vec;
        } else if (type) {
            v->type = (uint8_t)type;
            hed_ptx_next(p);
        } else if (hed_ptx_take_dot(p, "align")) {
            v->align = take_align(p);
            v->said_align = true;
        } else if (hed_ptx_take_dot(p, "attribute")) {
            take_attributes(p, v);
        } else if (hed_ptx_take_dot(p, "ptr")) {
            take_ptr(p, v);
        } else {
            break;
        }
    }
    if (!v->type)
        hed_ptx_syntax(p);
}

static void
take_dims(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    while (hed_ptx_take(p, '[')) {
        uint64_t n = 0;

        if (v->ndims == HED_PTX_DIMS_MAX)
            hed_ptx_fail(p, "Too many dimensions for '%s'", v->name);
        if (hed_ptx_at(p, ']')) {
            if (v->ndims > 0)
                hed_ptx_fail(p, "Only the first dimension of '%s' may be left out", v->name);
            v->unsized = true;
        } else {
            const struct hed_ptx_value size = hed_ptx_take_value(p);

            if (size.kind != HED_PTX_VALUE_INT || (!size.is_unsigned && (int64_t)size.bits < 0))
                hed_ptx_fail(p, "Illegal array size of '%s'", v->name);
            n = size.bits;
            if (n == 0 && v->ndims == 0)
                v->unsized = true;
        }
        hed_ptx_expect(p, ']');
        v->dims[v->ndims++] = n;
    }
}

void
hed_ptx_set_size(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    uint64_t size = (hed_ptx_types[v->type].bits + 7u) / 8 * (v->vec ? v->vec : 1u);

    if (!v->said_align)
        v->align = (uint32_t)size;
    for (int i = 0; i < v->ndims; i++) {
        if (__builtin_mul_overflow(size, v->dims[i], &size) || size > INT64_MAX)
            hed_ptx_fail(p, "'%s' is too large", v->name);
    }
    v->size = size;
}

/* Takes name and dimensions, after the prefix, and sets the size. */
static struct hed_ptx_name *
take_declarator(struct hed_ptx_parser *p, struct hed_ptx_var *v)
{
    struct hed_ptx_name *name = hed_ptx_take_name(p);

    v->name = name->text;
    v->line = p->tok.line;
    v->owner = p->func;
    take_dims(p, v);
    hed_ptx_set_size(p, v);
    return name;
}

/* An .extern variable may be declared again, and may be defined later. */
static bool
is_again(const struct hed_ptx_sym *old, const struct hed_ptx_var *v)
{
    return old && old->kind == HED_PTX_SYM_VAR && old->var->space == v->space &&
           old->var->type == v->type &&
           (old->var->linkage == HED_PTX_LINKAGE_EXTERN || v->linkage == HED_PTX_LINKAGE_EXTERN ||
            v->linkage == HED_PTX_LINKAGE_COMMON || v->linkage == HED_PTX_LINKAGE_WEAK);
}

/* Takes name[dims] = init. A second declaration completes the first object and returns NULL. */
static struct hed_ptx_var *
take_var(struct hed_ptx_parser *p, const struct hed_ptx_var *prefix)
{
    struct hed_ptx_var *v = hed_ptx_alloc(p, 1, sizeof(*v));

    *v = *prefix;

    struct hed_ptx_name *name = take_declarator(p, v);
    struct hed_ptx_sym *old = name->sym;

    if (old && old->depth == p->depth && is_again(old, v)) {
        if (v->linkage != HED_PTX_LINKAGE_EXTERN) {
            v->next = old->var->next;
            *old->var = *v;
        }
        if (hed_ptx_take(p, '='))
            hed_ptx_take_init(p, old->var);
        return NULL;
    }

    struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_VAR);

    if (s)
        s->var = v;
    if (hed_ptx_take(p, '='))
        hed_ptx_take_init(p, v);
    return v;
}

/* %r<10>: the variables %r0 .. %r9. Rare, and only for small numbers. */
#define REPEAT_MAX 4096u
#define NAME_MAX_BYTES 255u

static void
take_repeated(struct hed_ptx_parser *p, const struct hed_ptx_var *prefix, struct hed_ptx_var ***end)
{
    const struct hed_ptx_token stem = p->tok;

    hed_ptx_next(p);

    const uint32_t count = hed_ptx_take_range(p);

    if (count > REPEAT_MAX || stem.len > NAME_MAX_BYTES)
        hed_ptx_fail(p, "Too many variables '%.*s<%u>'", (int)(stem.len & 0xff), stem.text, count);
    for (uint32_t i = 0; i < count; i++) {
        char text[NAME_MAX_BYTES + 24];
        struct hed_ptx_var *v = hed_ptx_alloc(p, 1, sizeof(*v));
        const int len = snprintf(text, sizeof(text), "%.*s%u", (int)stem.len, stem.text, i);
        struct hed_ptx_name *name = hed_ptx_intern(p, text, (size_t)len);
        struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_VAR);

        *v = *prefix;
        v->name = name->text;
        v->line = stem.line;
        v->owner = p->func;
        hed_ptx_set_size(p, v);
        if (s)
            s->var = v;
        **end = v;
        *end = &v->next;
    }
}

struct hed_ptx_var *
hed_ptx_take_vars(struct hed_ptx_parser *p, int space, int linkage)
{
    struct hed_ptx_var prefix = {.space = (uint8_t)space, .linkage = (uint8_t)linkage};
    struct hed_ptx_var *first = NULL;
    struct hed_ptx_var **end = &first;

    take_prefix(p, &prefix);
    do {
        if (p->tok.kind != HED_PTX_TOKEN_IDENT)
            hed_ptx_syntax(p);
        if (p->lex.at < p->lex.end && *p->lex.at == '<') {
            take_repeated(p, &prefix, &end);
            continue;
        }

        struct hed_ptx_var *v = take_var(p, &prefix);

        if (v) {
            *end = v;
            end = &v->next;
        }
    } while (hed_ptx_take(p, ','));
    hed_ptx_expect(p, ';');
    return first;
}

static struct hed_ptx_var *
take_param(struct hed_ptx_parser *p)
{
    struct hed_ptx_var *v = hed_ptx_alloc(p, 1, sizeof(*v));
    const int space = hed_ptx_space_at(p);

    if (space != HED_PTX_SPACE_PARAM && space != HED_PTX_SPACE_REG)
        hed_ptx_syntax(p);
    hed_ptx_next(p);
    v->space = (uint8_t)space;
    take_prefix(p, v);
    take_declarator(p, v);
    return v;
}

struct hed_ptx_var *
hed_ptx_take_params(struct hed_ptx_parser *p, uint32_t *count, uint64_t *size)
{
    struct hed_ptx_var *first = NULL;
    struct hed_ptx_var **end = &first;

    hed_ptx_expect(p, '(');
    *count = 0;
    *size = 0;
    while (!hed_ptx_at(p, ')')) {
        struct hed_ptx_var *v = take_param(p);

        *end = v;
        end = &v->next;
        ++*count;
        v->offset = hed_align_up(*size, v->align);
        if (__builtin_add_overflow(v->offset, v->size, size) || *size > INT64_MAX)
            hed_ptx_fail(p, "Too large parameters");
        if (!hed_ptx_take(p, ',') && !hed_ptx_at(p, ')'))
            hed_ptx_syntax(p);
    }
    hed_ptx_next(p);
    return first;
}

void
hed_ptx_declare_params(struct hed_ptx_parser *p, struct hed_ptx_var *params)
{
    for (struct hed_ptx_var *v = params; v; v = v->next) {
        struct hed_ptx_name *name = hed_ptx_intern(p, v->name, strlen(v->name));
        const bool is_reg = v->space == HED_PTX_SPACE_REG;

        v->owner = p->func;
        if (name->len == 1 && name->text[0] == '_')
            continue;

        struct hed_ptx_sym *s =
            hed_ptx_declare(p, name, is_reg ? HED_PTX_SYM_REG : HED_PTX_SYM_VAR);

        if (!s)
            continue;
        if (is_reg) {
            struct hed_ptx_regs *decl = hed_ptx_alloc(p, 1, sizeof(*decl));

            decl->name = v->name;
            decl->type = v->type;
            decl->vec = v->vec;
            decl->count = 1;
            s->reg = v->reg = hed_ptx_new_reg(p, v->name, decl);
        } else {
            s->var = v;
        }
    }
}
