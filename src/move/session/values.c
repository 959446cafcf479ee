/* Texture and surface objects and conditional handles, whose values the device chooses. See
 * rebuild.c.
 *
 * The program has these values in its kernels' parameters and in device memory, so they must come
 * out as they were. Devices give the lowest value that is free. So objects are made in the order of
 * their values, and where the program has destroyed some, stand-ins are made that are destroyed
 * afterwards:
 *
 *   before   1 texture   (2 was destroyed)   3 surface
 *   again    1 texture    2 stand-in         3 surface     then 2 is destroyed
 */
#include "move/session/values.h"

#include <stdlib.h>

#include "base/err.h"
#include "driver/driver.h"
#include "move/session/snap.h"
#include "remote/client.h"

#define STAND_INS_MAX 65536u
#define STAND_IN_GRAPH UINT64_C(1) /* a name that no graph of the program has */

enum value_kind { VALUE_TEXTURE, VALUE_SURFACE, VALUE_CONDITION };

struct wanted {
    enum value_kind kind;
    uint64_t value;
    struct hed_context *ctx;
    struct hed_texture_given given; /* of an object */
    uint64_t graph;                 /* of a conditional handle, and how it was made */
    unsigned first, flags;
};

struct stand_in {
    bool surface;
    struct hed_context *ctx;
    uint64_t value;
};

struct values {
    struct hed_remote *remote;
    struct hed_why *why;
    struct wanted *wanted;
    size_t count, room;
    struct stand_in *stand_ins;
    size_t stand_in_count;
    struct hed_context *condition_ctx; /* stand-ins for conditional handles were made here */
};

static const char *
kind_name(enum value_kind kind)
{
    static const char *const names[] = {"texture object", "surface object", "conditional handle"};

    return names[kind];
}

static struct wanted *
add_wanted(struct values *v)
{
    if (v->count == v->room) {
        const size_t room = v->room ? 2 * v->room : 64;
        struct wanted *more = realloc(v->wanted, room * sizeof *more);

        if (!more)
            return NULL;
        v->wanted = more;
        v->room = room;
    }
    v->wanted[v->count] = (struct wanted){.value = 0};
    return &v->wanted[v->count++];
}

/* ---- what the program has -------------------------------------------------------------------- */

static int
note_object(void *arg, const struct hed_allocation *entry, bool surface,
            const struct hed_texture_given *given)
{
    struct values *v = arg;
    struct wanted *w = add_wanted(v);

    if (!w)
        return HED_ENOMEM;
    w->kind = surface ? VALUE_SURFACE : VALUE_TEXTURE;
    w->ctx = entry->ctx;
    w->value = entry->at - hed_remote_object_key(v->remote, entry->ctx, surface, 0);
    w->given = *given;
    return 0;
}

static int
note_conditions(struct values *v, const struct hed_graph *g)
{
    for (const struct hed_graph_handle *h = g->handles; h; h = h->next) {
        struct wanted *w;

        for (size_t i = 0; i < v->count; i++)
            if (v->wanted[i].kind == VALUE_CONDITION && v->wanted[i].value == h->handle)
                return 0; /* the graph has been seen */
        w = add_wanted(v);
        if (!w)
            return HED_ENOMEM;
        w->kind = VALUE_CONDITION;
        w->value = h->handle;
        w->ctx = h->ctx;
        w->graph = g->object.handle;
        w->first = h->value;
        w->flags = h->flags;
    }
    return 0;
}

static int
note_graph(void *arg, struct hed_object *o)
{
    return note_conditions(arg, (const struct hed_graph *)o);
}

static int
note_exec(void *arg, struct hed_object *o)
{
    const struct hed_exec *e = (const struct hed_exec *)o;

    return e->graph ? note_conditions(arg, e->graph) : 0;
}

static int
compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    const bool xc = x->kind == VALUE_CONDITION, yc = y->kind == VALUE_CONDITION;

    if (xc != yc)
        return xc - yc;
    return (x->value > y->value) - (x->value < y->value);
}

/* ---- making them ----------------------------------------------------------------------------- */

static CUresult
value_again(struct values *v, const struct wanted *w, bool stand_in, uint64_t *value)
{
    switch (w->kind) {
    case VALUE_TEXTURE:
        return hed_remote_make_texture(v->remote, w->ctx, &w->given.resource, &w->given.texture,
                                       w->given.has_view ? &w->given.view : NULL, value);
    case VALUE_SURFACE:
        return hed_remote_make_surface(v->remote, w->ctx, &w->given.resource, value);
    default:
        return hed_remote_graph_condition(v->remote, w->ctx, stand_in ? STAND_IN_GRAPH : w->graph,
                                          w->first, w->flags, value);
    }
}

static int
keep_stand_in(struct values *v, const struct wanted *w, uint64_t value)
{
    struct stand_in *more;

    if (w->kind == VALUE_CONDITION) {
        v->condition_ctx = w->ctx;
        return 0;
    }
    more = realloc(v->stand_ins, (v->stand_in_count + 1) * sizeof *more);
    if (!more)
        return HED_ENOMEM;
    v->stand_ins = more;
    more[v->stand_in_count++] = (struct stand_in){w->kind == VALUE_SURFACE, w->ctx, value};
    return 0;
}

static void
drop_stand_ins(struct values *v)
{
    for (size_t i = 0; i < v->stand_in_count; i++)
        hed_remote_drop_object(v->remote, v->stand_ins[i].ctx, v->stand_ins[i].surface,
                               v->stand_ins[i].value);
    if (v->condition_ctx)
        hed_remote_graph_conditions_gone(v->remote, STAND_IN_GRAPH);
}

static int
refuse_other_value(const struct values *v, const struct wanted *w, uint64_t value)
{
    hed_why_set(v->why,
                "the program has a %s with the value %#llx, which is %#llx on the new device",
                kind_name(w->kind), (unsigned long long)w->value, (unsigned long long)value);
    return HED_ENOTSUP;
}

/* Handles of conditions belong to graphs, so one that was made too early cannot be given away: the
 * values below are taken by stand-ins, one by one, and the last one is the program's. */
static int
make_wanted(struct values *v, const struct wanted *w, uint64_t *last)
{
    uint64_t value = *last;
    int err = 0;

    for (unsigned tries = 0; tries < STAND_INS_MAX && !err; tries++) {
        const bool stand_in = w->kind == VALUE_CONDITION && value + 1 < w->value;
        const CUresult r = value_again(v, w, stand_in, &value);

        if (r != CUDA_SUCCESS) {
            hed_why_set(v->why, "the server refuses a %s: CUDA error %d", kind_name(w->kind),
                        (int)r);
            return r == CUDA_ERROR_OUT_OF_MEMORY ? HED_ENOMEM : HED_ENOTSUP;
        }
        *last = value;
        if (value == w->value && !stand_in)
            return 0;
        if (value > w->value || (w->kind == VALUE_CONDITION && !stand_in))
            break;
        err = keep_stand_in(v, w, value);
    }
    return err ? err : refuse_other_value(v, w, value);
}

int
hed_remote_values_again(struct hed_remote *r, struct hed_why *why)
{
    struct values v = {.remote = r, .why = why};
    struct hed_handles *handles = r->driver->handles;
    uint64_t last = 0;
    int err = hed_texture_each(r->driver, note_object, &v);

    if (!err)
        err = hed_handles_each(handles, HED_KIND_GRAPH, note_graph, &v);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_GRAPH_EXEC, note_exec, &v);
    if (!err && v.count)
        qsort(v.wanted, v.count, sizeof *v.wanted, compare_wanted);
    for (size_t i = 0; i < v.count && !err; i++) {
        if (i > 0 && v.wanted[i].kind == VALUE_CONDITION && v.wanted[i - 1].kind != VALUE_CONDITION)
            last = 0;
        err = make_wanted(&v, &v.wanted[i], &last);
    }
    drop_stand_ins(&v);
    free(v.stand_ins);
    free(v.wanted);
    return err;
}
