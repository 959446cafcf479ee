/* Code at the standby, while the program still runs elsewhere. See early.h.
 *
 * Invariants:
 * 1. A library is not closed while its image is read (`pins`), and the program, which may free the
 *    image as soon as it has unloaded the library, waits. No module is kept by a reference then: it
 *    would keep the library open, and the program would not wait.
 * 2. Modules and functions are kept by references while the standby is told about them. These are
 *    given back when the thread has its own channel again, since the last one ends the object at
 *    the program's worker.
 * 3. Modules are told in the order in which the program loaded them: devices put variables where
 *    there is room.
 * 4. Functions are known by their handles, which are not used twice.
 */
#include "move/session/early.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "driver/driver.h"
#include "move/session/extents.h"
#include "move/session/reopen.h"
#include "move/session/standby.h"
#include "remote/client.h"

#define BUCKETS 1024u

struct early_function {
    struct early_function *next;
    uint64_t name;
    struct hed_remote_told told;
};

struct hed_remote_early {
    struct hed_remote_early_library *libraries;
    struct early_function *functions[BUCKETS];
};

/* ---- libraries ------------------------------------------------------------------------------- */

/* Closes the standby's library. The standby's channel is the thread's. */
static void
drop_early_library(struct hed_remote_early_library *l, bool close)
{
    if (l->there) {
        if (close)
            hed_remote_close_there(l->there);
        hed_remote_library_free(l->there);
    }
    free(l->order);
    free(l);
}

static void
drop_gone_libraries(struct hed_remote_standby *t)
{
    struct hed_remote_code *code = t->of->code;

    for (struct hed_remote_early_library *l = t->early->libraries; l; l = l->next)
        l->seen = false;
    hed_lock(&code->lock);
    for (const struct hed_remote_library *c = code->libraries; c; c = c->next)
        if (c->early)
            c->early->seen = true;
    hed_unlock(&code->lock);
    for (struct hed_remote_early_library **link = &t->early->libraries; *link;) {
        struct hed_remote_early_library *l = *link;

        if (l->seen) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        drop_early_library(l, true);
    }
}

/* A library that the standby has not been told about. It is not closed before it is unpinned. */
static struct hed_remote_library *
pin_new_library(struct hed_remote_code *code)
{
    struct hed_remote_library *c;

    hed_lock(&code->lock);
    for (c = code->libraries; c && c->early; c = c->next)
        continue;
    if (c)
        c->pins++;
    hed_unlock(&code->lock);
    return c;
}

static void
unpin_library(struct hed_remote_code *code, struct hed_remote_library *c)
{
    hed_lock(&code->lock);
    c->pins--;
    (void)pthread_cond_broadcast(&code->unpinned);
    hed_unlock(&code->lock);
}

/* A library of the same number was closed a moment ago. */
static void
drop_same_number(struct hed_remote_standby *t, uint32_t number)
{
    for (struct hed_remote_early_library **link = &t->early->libraries; *link;
         link = &(*link)->next) {
        struct hed_remote_early_library *l = *link;

        if (!l->there || l->there->number != number)
            continue;
        *link = l->next;
        drop_early_library(l, true);
        return;
    }
}

static int
tell_libraries(struct hed_remote_standby *t)
{
    struct hed_remote_code *code = t->of->code;
    struct hed_remote_library *c;
    int err = 0;

    /* Relaxed: this thread has noticed, if the standby is lost. */
    while (!err && !atomic_load_explicit(&t->remote.lost, memory_order_relaxed) &&
           (c = pin_new_library(code))) {
        struct hed_remote_early_library *l = calloc(1, sizeof *l);
        struct hed_why why = {""};

        if (l) {
            drop_same_number(t, c->number);
            if (hed_remote_open_at(&t->remote, c, &l->there, &l->order, &why) != CUDA_SUCCESS)
                hed_info(REMOTE, "code is not loaded before the program stops: %s", why.text);
            l->next = t->early->libraries;
            t->early->libraries = l;
            c->early = l;
            (void)hed_remote_allocates(t->of, c);
            (void)hed_remote_variable_names(t->of, &c->code, NULL, NULL);
        } else {
            err = HED_ENOMEM;
        }
        unpin_library(code, c);
    }
    return err;
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct early_function **
bucket_of_function(struct hed_remote_early *e, uint64_t name)
{
    return &e->functions[(name * UINT64_C(0x9e3779b97f4a7c15) >> 40) % BUCKETS];
}

static struct early_function *
find_early_function(struct hed_remote_early *e, uint64_t name)
{
    struct early_function *f = *bucket_of_function(e, name);

    while (f && f->name != name)
        f = f->next;
    return f;
}

struct hed_remote_told *
hed_remote_early_function(struct hed_remote *standby, const struct hed_function *f)
{
    struct hed_remote_early *e = standby ? ((struct hed_remote_standby *)standby)->early : NULL;
    struct early_function *found = e ? find_early_function(e, f->object.handle) : NULL;

    return found ? &found->told : NULL;
}

static bool
is_untold(struct hed_remote_early *e, const struct hed_function *f)
{
    const struct early_function *known = find_early_function(e, f->object.handle);

    /* Relaxed: if it is loaded a moment later, it is told later. */
    return !known ||
           (!known->told.loaded && atomic_load_explicit(&f->loaded, memory_order_relaxed));
}

static void
tell_function(struct hed_remote_standby *t, struct hed_function *f,
              const struct hed_remote_early_library *l)
{
    struct early_function *known = find_early_function(t->early, f->object.handle);

    if (!known) {
        struct early_function **bucket = bucket_of_function(t->early, f->object.handle);

        known = calloc(1, sizeof *known);
        if (!known)
            return;
        known->name = f->object.handle;
        known->next = *bucket;
        *bucket = known;
        hed_remote_function_tell(&t->remote, f, l->there->number, l->order[f->kernel],
                                 &known->told);
    }
    hed_remote_function_retell(&t->remote, f, &known->told);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Objects to which there are references. */
struct kept_objects {
    struct hed_object **all;
    size_t count, room;
};

static bool
keep_ref(struct kept_objects *k, struct hed_object *o)
{
    if (k->count == k->room) {
        const size_t room = k->room ? 2 * k->room : 64;
        struct hed_object **all = realloc(k->all, room * sizeof *all);

        if (!all)
            return false;
        k->all = all;
        k->room = room;
    }
    hed_object_ref(o);
    k->all[k->count++] = o;
    return true;
}

static void
give_kept_back(struct kept_objects *k)
{
    for (size_t i = 0; i < k->count; i++)
        hed_object_put(k->all[i]);
    free(k->all);
    *k = (struct kept_objects){.count = 0};
}

static int
keep_exec(void *arg, struct hed_object *o)
{
    return keep_ref(arg, o) ? 0 : HED_ENOMEM;
}

/* All modules in contexts that the standby has, the last one of each context first. While it is in
 * the list, a module has its handle, and with it a reference. */
static void
keep_modules(const struct hed_remote_standby *t, struct kept_objects *modules)
{
    for (size_t i = t->context_count; i-- > 0;) {
        struct hed_context *c = t->contexts[i];
        bool kept = true;

        if (!hed_context_alive(c))
            continue;
        hed_lock(&c->lock);
        for (struct hed_module *m = c->modules; m && kept; m = m->next)
            kept = keep_ref(modules, &m->object);
        hed_unlock(&c->lock);
    }
}

static void
keep_functions(struct hed_remote_standby *t, struct hed_module *m, struct kept_objects *functions)
{
    hed_lock(&m->lock);
    for (uint32_t i = 0; i < m->code->kernel_count && !m->unloaded; i++) {
        /* Relaxed: under the lock. */
        struct hed_function *f = atomic_load_explicit(&m->functions[i], memory_order_relaxed);

        if (f && is_untold(t->early, f) && !keep_ref(functions, &f->object))
            break;
    }
    hed_unlock(&m->lock);
}

/* Where a variable is, so that nobody need ask when the program is held. */
struct looking_up {
    struct hed_remote *remote;
    struct hed_module *module;
    struct hed_code *there;
};

static int
look_up_variable(void *arg, const char *name)
{
    const struct looking_up *l = arg;
    uint64_t at, size;

    if (hed_context_alive(l->module->ctx))
        (void)hed_remote_variable_known(l->remote, l->module->ctx, l->module->code, l->there, name,
                                        &at, &size);
    return 0;
}

/* The image is not read for this. */
static void
look_up_variables(struct hed_remote *r, struct hed_module *m, struct hed_code *there)
{
    struct looking_up l = {r, m, there};

    if (hed_remote_knows_names(r, m->code))
        (void)hed_remote_variable_names(r, m->code, look_up_variable, &l);
}

/* Functions and variables of modules, of which the oldest is last. */
static void
tell_modules(struct hed_remote_standby *t, const struct kept_objects *modules,
             struct kept_objects *functions)
{
    for (size_t i = modules->count; i-- > 0;) {
        struct hed_module *m = (struct hed_module *)modules->all[i];
        const struct hed_remote_early_library *l = hed_remote_library(m->code)->early;
        size_t k = functions->count;

        if (!l || !l->there)
            continue;
        keep_functions(t, m, functions);
        for (; k < functions->count; k++)
            tell_function(t, (struct hed_function *)functions->all[k], l);
        look_up_variables(&t->remote, m, &l->there->code);
    }
}

int
hed_remote_early_tell(struct hed_remote_standby *t)
{
    struct kept_objects modules = {.count = 0}, functions = {.count = 0}, execs = {.count = 0};
    struct hed_remote_channel *own;
    int err;

    if (!t->early && !(t->early = calloc(1, sizeof *t->early)))
        return HED_ENOMEM;
    own = hed_remote_channel_aside();
    drop_gone_libraries(t);
    err = tell_libraries(t);
    hed_remote_channel_back(own);
    if (err)
        return err;
    keep_modules(t, &modules);
    (void)hed_handles_each(t->of->driver->handles, HED_KIND_GRAPH_EXEC, keep_exec, &execs);
    for (size_t i = modules.count; i-- > 0;) {
        struct hed_module *m = (struct hed_module *)modules.all[i];

        look_up_variables(t->of, m, m->code);
    }
    own = hed_remote_channel_aside();
    tell_modules(t, &modules, &functions);
    /* What is private memory depends on whether the heap is shared. */
    for (size_t i = 0; i < execs.count && t->coded && t->remote.shares_heap == t->of->shares_heap;
         i++)
        hed_remote_early_graph(t, (struct hed_exec *)execs.all[i]);
    t->coded = true;
    hed_remote_channel_back(own);
    give_kept_back(&execs);
    give_kept_back(&functions);
    give_kept_back(&modules);
    return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Functions of libraries and contexts that are gone have gone with them, at the standby too. */
static void
forget_gone_functions(struct hed_remote_standby *t)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct early_function *f = t->early->functions[i]; f; f = f->next) {
            struct hed_object *o =
                hed_handles_get(t->of->driver->handles, HED_KIND_FUNCTION, f->name);

            if (o)
                hed_object_put(o);
            else
                hed_remote_function_forget(&t->remote, f->name);
        }
}

void
hed_remote_early_settle(struct hed_remote_standby *t)
{
    struct hed_remote_channel *own;

    if (!t->early)
        return;
    own = hed_remote_channel_aside();
    hed_remote_early_drop_graphs(t);
    drop_gone_libraries(t);
    forget_gone_functions(t);
    hed_remote_channel_back(own);
}

void
hed_remote_early_free(struct hed_remote_standby *t)
{
    struct hed_remote_early *e = t->early;
    struct hed_remote_code *code = t->of->code;

    if (!e)
        return;
    hed_lock(&code->lock);
    for (struct hed_remote_library *c = code->libraries; c; c = c->next)
        c->early = NULL;
    hed_unlock(&code->lock);
    while (e->libraries) {
        struct hed_remote_early_library *l = e->libraries;

        e->libraries = l->next;
        drop_early_library(l, false);
    }
    for (size_t i = 0; i < BUCKETS; i++)
        while (e->functions[i]) {
            struct early_function *f = e->functions[i];

            e->functions[i] = f->next;
            free(f);
        }
    hed_remote_early_forget_graphs(t);
    free(e);
    t->early = NULL;
}
