/* Tells a new worker about everything that the program has: contexts, memory, code, streams,
 * events, arrays, objects. See snap.h.
 *
 *   contexts ──> memory ──> libraries ──> variables, functions ──> streams ──> events
 *            └─> arrays ──> textures, surfaces            executable graphs: with their next launch
 *
 * Most of it is made by the functions that the driver calls when an object is new. What a device
 * chooses itself (addresses of variables, values of texture objects, conditional handles) must come
 * out as before, since the program has these numbers; otherwise the worker is refused, with the
 * name of the object.
 */
#include <string.h>

#include "base/err.h"
#include "driver/driver.h"
#include "move/session/early.h"
#include "move/session/extents.h"
#include "move/session/reopen.h"
#include "move/session/snap.h"
#include "move/session/standby.h"
#include "move/session/values.h"
#include "remote/client.h"

/* What the functions below are given. */
struct rebuilding {
    struct hed_remote *remote;
    struct hed_remote *standby; /* what the worker was before; may be NULL */
    struct hed_why *why;
};

static int
refuse_object(const struct rebuilding *b, CUresult result, const char *what, const char *name)
{
    if (result == CUDA_SUCCESS)
        return 0;
    hed_why_set(b->why, "the server refuses %s%s%s: CUDA error %d", what, name[0] ? " " : "", name,
                (int)result);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? HED_ENOMEM : HED_ENOTSUP;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static int
each_context(struct rebuilding *b, int (*fn)(struct rebuilding *b, struct hed_context *c))
{
    struct hed_driver *d = b->remote->driver;
    int err = 0;

    /* The program is held, so the list does not change. */
    for (struct hed_context *c = d->contexts; c && !err; c = c->next)
        if (hed_context_alive(c))
            err = fn(b, c);
    return err;
}

static int
context_again(struct rebuilding *b, struct hed_context *c)
{
    struct hed_remote_context *own = hed_remote_context(c);
    CUresult result;

    own->made = b->standby && hed_remote_standby_has(b->standby, c);
    own->reset = own->reset && !own->made;
    result = own->made ? CUDA_SUCCESS : hed_remote_context_made(b->remote, c);
    for (int i = 0; i < HED_LIMITS && result == CUDA_SUCCESS; i++)
        if (own->limits >> i & 1)
            result =
                hed_remote_context_limit(b->remote, c, (CUlimit)i,
                                         atomic_load_explicit(&c->limits[i], memory_order_relaxed));
    return refuse_object(b, result, "a context", "");
}

static int
enable_peers(struct rebuilding *b, struct hed_context *c)
{
    const uint64_t peers = atomic_load_explicit(&c->peers, memory_order_relaxed);
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < b->remote->device_count && result == CUDA_SUCCESS; i++) {
        struct hed_context *peer = peers >> i & 1 ? hed_context_living(b->remote->driver, i) : NULL;

        if (!peer)
            continue;
        result = hed_remote_ask(b->remote, c->object.handle, 0, cuCtxEnablePeerAccess,
                                .peerContext = hed_context_handle(peer));
        hed_context_unref(peer);
        if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
            result = CUDA_SUCCESS;
    }
    return refuse_object(b, result, "access to the memory of another device", "");
}

/* ---- code ------------------------------------------------------------------------------------ */

struct same_variable {
    struct rebuilding *b;
    struct hed_context *ctx;
    struct hed_code *code;
    bool managed;
};

static int
check_variable(void *arg, const char *name, uint64_t at, uint64_t size)
{
    const struct same_variable *s = arg;
    uint64_t new_at = at, new_size = 0;
    /* If it is the same address, that is reserved already. */
    const CUresult result =
        s->managed
            ? hed_remote_variable(s->b->remote, s->ctx, s->code, true, name, &new_at, &new_size)
            : hed_remote_variable_known(s->b->remote, s->ctx, s->code, s->code, name, &new_at,
                                        &new_size);

    if (result == CUDA_SUCCESS && new_at == at && new_size == size)
        return 0;
    if (result == CUDA_SUCCESS)
        hed_why_set(s->b->why,
                    "the program has the address of the variable %s (%#llx), which is at %#llx on "
                    "the new device",
                    name, (unsigned long long)at, (unsigned long long)new_at);
    else
        (void)refuse_object(s->b, result, "the variable", name);
    return HED_ENOTSUP;
}

static void
function_again(struct rebuilding *b, struct hed_function *f)
{
    struct hed_remote_told *told = hed_remote_early_function(b->standby, f), none;

    if (!told) {
        struct hed_remote_library *c = hed_remote_library(f->module->code);

        told = &none;
        hed_remote_function_tell(b->remote, f, c->number, hed_remote_kernel_there(c, f->kernel),
                                 told);
    }
    hed_remote_function_retell(b->remote, f, told);
}

/* Functions and variables of one module. */
static int
module_again(struct rebuilding *b, struct hed_context *c, struct hed_module *m)
{
    struct same_variable s = {.b = b, .ctx = c, .code = m->code};

    for (uint32_t i = 0; i < m->code->kernel_count; i++) {
        /* Relaxed: the program is held. */
        struct hed_function *f = atomic_load_explicit(&m->functions[i], memory_order_relaxed);

        if (f)
            function_again(b, f);
    }
    return hed_module_each_unlisted(m, check_variable, &s);
}

/* A device puts variables where there is room, so modules come in the order in which the program
 * loaded them. The list has the last one first. */
static int
modules_again(struct rebuilding *b, struct hed_context *c)
{
    size_t count = 0;
    int err = 0;

    for (const struct hed_module *m = c->modules; m; m = m->next)
        count++;
    for (; count > 0 && !err; count--) {
        struct hed_module *m = c->modules;

        for (size_t i = 1; i < count; i++)
            m = m->next;
        err = module_again(b, c, m);
    }
    return err;
}

static int
check_library(void *arg, struct hed_object *o)
{
    struct rebuilding *b = arg;
    struct hed_library *l = (struct hed_library *)o;
    struct same_variable s = {.b = b, .managed = true};

    for (int i = 0; i < b->remote->device_count && !s.code; i++)
        s.code = l->programs[i] ? l->programs[i]->code : NULL;
    return s.code ? hed_library_each_unlisted(l, check_variable, &s) : 0;
}

static int
code_again(struct rebuilding *b)
{
    struct hed_handles *handles = b->remote->driver->handles;
    const CUresult result = hed_remote_open_again(b->remote, b->standby, b->why);
    int err = result == CUDA_SUCCESS               ? 0
              : result == CUDA_ERROR_OUT_OF_MEMORY ? HED_ENOMEM
                                                   : HED_ENOTSUP;

    if (!err)
        err = each_context(b, modules_again);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_LIBRARY, check_library, b);
    return err;
}

/* ---- streams and events ---------------------------------------------------------------------- */

static int
stream_again(void *arg, struct hed_object *o)
{
    struct rebuilding *b = arg;
    struct hed_stream *s = (struct hed_stream *)o;
    const struct hed_remote_stream *q = hed_remote_stream(s);

    if (s->is_legacy)
        return 0;
    hed_remote_stream_made(b->remote, s);
    for (unsigned i = 0; i < sizeof s->attributes / sizeof *s->attributes; i++)
        if (q->set >> i & 1)
            hed_remote_stream_set(b->remote, s, (CUlaunchAttributeID)i, &s->attributes[i]);
    return 0;
}

static int
event_again(void *arg, struct hed_object *o)
{
    struct rebuilding *b = arg;
    struct hed_event *e = (struct hed_event *)o;

    /* Relaxed: the program is held. */
    if (atomic_load_explicit(&e->mirrored, memory_order_relaxed))
        hed_remote_event_again(b->remote, e);
    return 0;
}

static int
exec_again(void *arg, struct hed_object *o)
{
    const struct rebuilding *b = arg;

    hed_remote_graph_again(b->remote, b->standby, (struct hed_exec *)o);
    return 0;
}

/* ---- arrays and objects ---------------------------------------------------------------------- */

/* The context in which an array or mipmap was made. */
static struct hed_context *
context_of_key(struct hed_driver *d, uint64_t key)
{
    struct hed_allocation a;

    return hed_memory_find(d, key, &a) && a.at == key ? a.ctx : NULL;
}

static int
array_again(void *arg, struct hed_object *o)
{
    struct rebuilding *b = arg;
    struct hed_array *a = (struct hed_array *)o;
    struct hed_context *c =
        a->is_level ? NULL : context_of_key(b->remote->driver, a->object.handle);

    return c ? refuse_object(b, hed_remote_make_array(b->remote, c, a), "an array", "") : 0;
}

static int
mipmap_again(void *arg, struct hed_object *o)
{
    struct rebuilding *b = arg;
    struct hed_mipmap *m = (struct hed_mipmap *)o;
    struct hed_context *c = context_of_key(b->remote->driver, m->object.handle);

    return c ? refuse_object(b, hed_remote_make_mipmap(b->remote, c, m), "a mipmapped array", "")
             : 0;
}

int
hed_remote_rebuild(struct hed_remote *r, struct hed_remote *standby, struct hed_why *why)
{
    struct rebuilding b = {r, standby, why};
    struct hed_handles *handles = r->driver->handles;
    int err = standby ? 0 : hed_remote_lease_again(r, why); /* the standby has its leases */

    if (!err)
        err = each_context(&b, context_again);
    if (!err)
        err = each_context(&b, enable_peers);
    hed_remote_lap(r, HED_TALK_REMADE);
    if (!err) {
        const bool entered = hed_remote_enter_any(r);

        err = hed_remote_map_again(r, standby, why);
        if (entered)
            hed_thread_pop(r->driver);
    }
    hed_remote_lap(r, HED_TALK_MAPPED);
    if (!err)
        err = code_again(&b);
    hed_remote_lap(r, HED_TALK_CODE);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_STREAM, stream_again, &b);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_EVENT, event_again, &b);
    hed_remote_lap(r, HED_TALK_QUEUES);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_ARRAY, array_again, &b);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_MIPMAP, mipmap_again, &b);
    if (!err)
        err = hed_remote_values_again(r, why);
    if (!err)
        err = hed_handles_each(handles, HED_KIND_GRAPH_EXEC, exec_again, &b);
    hed_remote_lap(r, HED_TALK_IMAGES);
    return err;
}
