/* The order of variables and functions; the functions and the shared memory of a kernel. See
 * layout.h. */
#include "kernel/ptx/run/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/device_calls.h"
#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/run/abi.h"

#define SHARED_ALIGN_LEAST 16u
#define ALIAS_CHAIN_MAX 64

void
hed_ptx_leave_out_device_runtime(struct hed_ptx_module *m)
{
    for (struct hed_ptx_func *f = m->funcs; f; f = f->next)
        if (f->has_body && !f->is_entry &&
            hed_device_call_find(f->name, strlen(f->name), true) >= 0)
            f->has_body = false;
}

bool
hed_ptx_var_counts(const struct hed_ptx_var *v)
{
    return v->space == HED_PTX_SPACE_GLOBAL || v->space == HED_PTX_SPACE_CONST;
}

void
hed_ptx_each_var(const struct hed_ptx_module *m, hed_ptx_var_fn fn, void *arg)
{
    uint32_t n = 0;

    for (const struct hed_ptx_item *i = m->items; i; i = i->next) {
        if (i->kind == HED_PTX_ITEM_VAR && hed_ptx_var_counts(i->var))
            fn(arg, n++, i->var);
    }
    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next) {
        for (const struct hed_ptx_var *v = f->vars; v; v = v->next) {
            if (hed_ptx_var_counts(v))
                fn(arg, n++, v);
        }
    }
}

static void
count_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    (void)v;
    *(uint32_t *)arg = index + 1;
}

uint32_t
hed_ptx_var_count(const struct hed_ptx_module *m)
{
    uint32_t n = 0;

    hed_ptx_each_var(m, count_var, &n);
    return n;
}

struct sought {
    const struct hed_ptx_var *var;
    uint32_t index;
};

static void
match_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct sought *s = arg;

    if (v == s->var)
        s->index = index;
}

uint32_t
hed_ptx_var_index(const struct hed_ptx_module *m, const struct hed_ptx_var *v)
{
    struct sought s = {.var = v, .index = UINT32_MAX};

    hed_ptx_each_var(m, match_var, &s);
    return s.index;
}

uint32_t
hed_ptx_func_index(const struct hed_ptx_module *m, const struct hed_ptx_func *f)
{
    uint32_t n = 0;

    for (const struct hed_ptx_func *at = m->funcs; at; at = at->next, n++) {
        if (at == f)
            return n;
    }
    return UINT32_MAX;
}

const struct hed_ptx_func *
hed_ptx_func_real(const struct hed_ptx_func *f)
{
    /* A module may have a ring of aliases, none of which has a body. */
    for (int i = 0; f->alias && i < ALIAS_CHAIN_MAX; i++)
        f = f->alias;
    return f;
}

uint64_t
hed_ptx_func_address(const struct hed_ptx_module *m, const struct hed_ptx_func *f)
{
    return HED_PTX_FUNC_STRIDE * (UINT64_C(1) + hed_ptx_func_index(m, hed_ptx_func_real(f)));
}

static uint64_t
relocated_address(const struct hed_ptx_module *m, const struct hed_ptx_reloc *r,
                  const uint64_t *addresses, uint32_t count)
{
    if (r->func)
        return hed_ptx_func_address(m, r->func);

    const uint32_t index = r->var ? hed_ptx_var_index(m, r->var) : UINT32_MAX;

    return index < count ? addresses[index] : 0;
}

void
hed_ptx_relocate_var(const struct hed_ptx_module *m, const struct hed_ptx_var *v, void *at,
                     const uint64_t *addresses, uint32_t count)
{
    for (const struct hed_ptx_reloc *r = v->relocs; r; r = r->next) {
        uint64_t value = relocated_address(m, r, addresses, count) + (uint64_t)r->addend;

        if (r->mask)
            value = (value & r->mask) >> __builtin_ctzll(r->mask);
        if (r->at <= v->size && r->bytes <= v->size - r->at && r->bytes <= sizeof value)
            memcpy((unsigned char *)at + r->at, &value, r->bytes);
    }
}

/* ---- reach ----------------------------------------------------------------------------------- */

struct reach {
    struct hed_ptx_unit *u;
    const struct hed_ptx_module *m;
    bool indirect; /* a function calls through a pointer */
};

static void
add_func(struct reach *r, const struct hed_ptx_func *f)
{
    f = hed_ptx_func_real(f);

    const uint32_t index = hed_ptx_func_index(r->m, f);

    if (index == UINT32_MAX || r->u->reached[index] || !f->has_body)
        return;
    r->u->reached[index] = true;
    r->u->funcs[r->u->nfuncs++] = f;
}

/* A kernel's address is for launching it, never for calls. */
static void
add_addressed(struct reach *r)
{
    for (const struct hed_ptx_func *f = r->m->funcs; f; f = f->next) {
        if (f->address_taken && !f->is_entry)
            add_func(r, f);
    }
}

/* Adds what the functions from number i on call by name. */
static void
add_called(struct reach *r, uint32_t i)
{
    for (; i < r->u->nfuncs; i++) {
        const struct hed_ptx_func *f = r->u->funcs[i];

        for (const struct hed_ptx_call *c = f->calls; c; c = c->next)
            add_func(r, c->callee);
        r->indirect = r->indirect || f->calls_indirectly;
    }
}

static void
find_reach(struct reach *r, const struct hed_ptx_func *kernel)
{
    add_func(r, kernel);
    add_called(r, 0);
    r->u->ncalled = r->u->nfuncs;
    if (r->indirect) {
        add_addressed(r);
        add_called(r, r->u->ncalled);
    }
}

/* Is there a cycle of calls? Repeatedly removes functions that call none of the remaining ones; a
 * cycle remains. */
static bool
find_recursion(const struct hed_ptx_unit *u, const struct hed_ptx_module *m, bool *left)
{
    bool changed = true;
    uint32_t count = u->nfuncs;

    for (uint32_t i = 0; i < u->nfuncs; i++)
        left[hed_ptx_func_index(m, u->funcs[i])] = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < u->nfuncs; i++) {
            const uint32_t index = hed_ptx_func_index(m, u->funcs[i]);
            bool calls = false;

            if (!left[index])
                continue;
            for (const struct hed_ptx_call *c = u->funcs[i]->calls; c && !calls; c = c->next) {
                const uint32_t callee = hed_ptx_func_index(m, hed_ptx_func_real(c->callee));

                calls = callee != UINT32_MAX && left[callee];
            }
            if (!calls) {
                left[index] = false;
                changed = true;
                count--;
            }
        }
    }
    return count > 0;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static bool
is_shared_var(const struct hed_ptx_var *v)
{
    return v->space == HED_PTX_SPACE_SHARED || v->space == HED_PTX_SPACE_SHARED_CTA ||
           v->space == HED_PTX_SPACE_SHARED_CLUSTER;
}

static bool
is_dynamic(const struct hed_ptx_var *v)
{
    return v->unsized || v->linkage == HED_PTX_LINKAGE_EXTERN;
}

static int
add_shared(struct hed_ptx_unit *u, const struct hed_ptx_var *v)
{
    struct hed_ptx_placed *more;

    for (uint32_t i = 0; i < u->nshared; i++) {
        if (u->shared[i].var == v)
            return 0;
    }
    if ((u->nshared & (u->nshared + 1)) == 0) {
        more = realloc(u->shared, 2 * ((size_t)u->nshared + 1) * sizeof(*more));
        if (!more)
            return HED_ENOMEM;
        u->shared = more;
    }
    u->shared[u->nshared++] = (struct hed_ptx_placed){.var = v};
    return 0;
}

static int
add_operand(struct hed_ptx_unit *u, const struct hed_ptx_operand *o)
{
    int err = 0;

    switch (o->kind) {
    case HED_PTX_OPERAND_VAR:
        return is_shared_var(o->var) ? add_shared(u, o->var) : 0;
    case HED_PTX_OPERAND_MEM:
        return o->base == HED_PTX_OPERAND_VAR && is_shared_var(o->var) ? add_shared(u, o->var) : 0;
    case HED_PTX_OPERAND_TUPLE:
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
        for (uint32_t i = 0; i < o->count && err == 0; i++)
            err = add_operand(u, &o->elems[i]);
        return err;
    default:
        return 0;
    }
}

/* Adds the shared variables that a function mentions, and all that it declares: on a GPU their size
 * counts whether they are used or not. */
static int
add_mentioned(struct hed_ptx_unit *u, const struct hed_ptx_func *f)
{
    int err = 0;

    for (const struct hed_ptx_var *v = f->vars; v && err == 0; v = v->next) {
        if (is_shared_var(v))
            err = add_shared(u, v);
    }
    for (const struct hed_ptx_stmt *s = f->body; s && err == 0; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;
        for (unsigned k = 0; k < i->noperands && err == 0; k++)
            err = add_operand(u, &i->operands[k]);
    }
    return err;
}

/* Static variables come one after the other; all dynamic ones begin where those end. */
static int
place_shared(struct hed_ptx_unit *u)
{
    uint64_t at = 0;

    u->shared_align = SHARED_ALIGN_LEAST;
    for (uint32_t i = 0; i < u->nshared; i++) {
        const struct hed_ptx_var *v = u->shared[i].var;

        if (is_dynamic(v)) {
            if (v->align > u->shared_align)
                u->shared_align = v->align;
            continue;
        }
        at = hed_align_up(at, v->align);
        u->shared[i].offset = (uint32_t)at;
        if (v->size > INT32_MAX || at + v->size > INT32_MAX)
            return HED_ELIMIT;
        at += v->size;
    }
    u->shared_size = (uint32_t)at;
    for (uint32_t i = 0; i < u->nshared; i++) {
        if (is_dynamic(u->shared[i].var))
            u->shared[i].offset = (uint32_t)hed_align_up(at, u->shared_align);
    }
    return 0;
}

int
hed_ptx_unit_init(struct hed_ptx_unit *u, const struct hed_ptx_module *m,
                  const struct hed_ptx_func *kernel)
{
    struct reach r = {.u = u, .m = m};
    bool *left = calloc((size_t)m->nfuncs + 1, sizeof(*left));
    int err = 0;

    *u = (struct hed_ptx_unit){0};
    u->funcs = calloc((size_t)m->nfuncs + 1, sizeof(*u->funcs));
    u->reached = calloc((size_t)m->nfuncs + 1, sizeof(*u->reached));
    if (!left || !u->funcs || !u->reached)
        err = HED_ENOMEM;
    if (err == 0) {
        find_reach(&r, kernel);
        u->recurses = r.indirect || find_recursion(u, m, left);
        for (uint32_t i = 0; i < u->nfuncs && err == 0; i++)
            err = add_mentioned(u, u->funcs[i]);
    }
    if (err == 0)
        err = place_shared(u);
    free(left);
    if (err != 0)
        hed_ptx_unit_fini(u);
    return err;
}

void
hed_ptx_unit_fini(struct hed_ptx_unit *u)
{
    free(u->funcs);
    free(u->reached);
    free(u->shared);
    *u = (struct hed_ptx_unit){0};
}
