/* What memory there is, and copies of it. See extents.h. */
#include "move/session/extents.h"

#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/err.h"
#include "base/number.h"
#include "driver/driver.h"
#include "remote/client.h"

#define SMALL 65536u /* bytes; such a copy is not waited for alone */

struct listing {
    struct hed_remote_extents *list;
    struct hed_remote *remote;
    struct hed_why *why;
    struct hed_module *module; /* whose variables are being listed */
};

static int
add_extent(struct hed_remote_extents *x, const struct hed_remote_extent *e)
{
    if (x->count == x->room) {
        const size_t room = x->room ? 2 * x->room : 64;
        struct hed_remote_extent *all = realloc(x->all, room * sizeof *all);

        if (!all)
            return HED_ENOMEM;
        x->all = all;
        x->room = room;
    }
    x->all[x->count] = *e;
    x->all[x->count].about.name = e->name ? e->name : "";
    x->count++;
    x->bytes += e->about.size;
    x->chunks += hed_divide_up(e->about.size, HED_EXTENT_CHUNK);
    return 0;
}

/* Any living context of a device: memory can be copied in all of them. */
static struct hed_context *
context_to_copy_in(struct hed_remote *r, int device)
{
    struct hed_context *found = hed_context_living(r->driver, device);

    if (found) /* the program is held, so it lives on */
        hed_context_unref(found);
    return found;
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Does anything live there? Blocks that are kept for later are empty. */
bool
hed_remote_is_lived_in(struct hed_driver *d, uint64_t at, uint64_t size)
{
    hed_lock(&d->memory_lock);

    const bool found = hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, at, size) != NULL;

    hed_unlock(&d->memory_lock);
    return found;
}

static int
list_device(void *arg, const struct hed_remote_mapping *m)
{
    struct listing *l = arg;
    struct hed_context *c = context_to_copy_in(l->remote, m->device);

    if (!hed_remote_is_lived_in(l->remote->driver, m->at, m->size))
        return 0;
    if (!c) {
        hed_why_set(l->why, "device %d has memory, but no context to read it in", m->device);
        return HED_ENOTSUP;
    }
    return add_extent(l->list, &(struct hed_remote_extent){.about = {.kind = HED_SNAP_DEVICE,
                                                                     .device = (uint32_t)m->device,
                                                                     .key = m->at,
                                                                     .size = m->size},
                                                           .ctx = c,
                                                           .at = m->at});
}

/* ---- physical memory ------------------------------------------------------------------------- */

struct view_search {
    uint64_t physical, at; /* at: 0 until one is found that can be read and written */
};

static int
find_usable_view(void *arg, const struct hed_remote_mapping *m)
{
    struct view_search *s = arg;

    if (m->physical == s->physical && m->has_access &&
        m->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        s->at = m->at;
    return 0;
}

/* Maps physical memory that the program has mapped nowhere, or not for writing. */
static int
map_for_copies(struct hed_remote *r, struct hed_physical *p, uint64_t *at)
{
    struct hed_device *dev = p->device ? p->device : &r->driver->devices[0];
    struct hed_driver *d = r->driver;

    hed_lock(&d->memory_lock);

    int err = hed_space_take(dev->space, p->size, HED_PHYSICAL_UNIT, at);

    hed_unlock(&d->memory_lock);
    if (err)
        return err;
    err = hed_remote_physical_map(r, p->memory, 0, *at, p->size);
    if (!err) {
        err = hed_remote_protect(r, *at, p->size, true, true);
        if (err)
            hed_remote_unmap(r, *at, p->size);
    }
    if (err) {
        hed_lock(&d->memory_lock);
        (void)hed_space_give(dev->space, *at);
        hed_unlock(&d->memory_lock);
    }
    return err;
}

static void
unmap_for_copies(struct hed_remote *r, const struct hed_remote_extent *e)
{
    struct hed_device *dev = e->view->device ? e->view->device : &r->driver->devices[0];

    hed_remote_unmap(r, e->at, e->about.size);
    hed_lock(&r->driver->memory_lock);
    (void)hed_space_give(dev->space, e->at);
    hed_unlock(&r->driver->memory_lock);
}

static int
list_physical(void *arg, struct hed_object *o)
{
    struct listing *l = arg;
    struct hed_physical *p = (struct hed_physical *)o;
    struct view_search s = {.physical = hed_remote_physical_name(p->memory)};
    struct hed_remote_extent e = {
        .about = {.kind = HED_SNAP_PHYSICAL,
                  .device = p->device ? (uint32_t)p->device->ordinal : 0,
                  .key = s.physical,
                  .size = p->size},
        .ctx = context_to_copy_in(l->remote, p->device ? p->device->ordinal : -1)};
    int err = hed_remote_mappings_each(l->remote, HED_MAP_VIEW, find_usable_view, &s);

    if (err)
        return err;
    if (!e.ctx || p->imported) {
        hed_why_set(l->why, p->imported ? "it has imported memory of another process"
                                        : "it has physical memory, but no context to read it in");
        return HED_ENOTSUP;
    }
    if (!s.at) {
        err = map_for_copies(l->remote, p, &s.at);
        if (err) {
            hed_why_set(l->why,
                        "physical memory of %llu bytes that is mapped nowhere cannot be "
                        "mapped to save it: %s",
                        (unsigned long long)p->size, hed_err_text(err));
            return err;
        }
        e.view = p;
    }
    e.at = s.at;
    err = add_extent(l->list, &e);
    if (err && e.view)
        unmap_for_copies(l->remote, &e);
    return err;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static uint64_t
array_row(const struct hed_array *a)
{
    return (uint64_t)a->image.width * a->format.bytes;
}

static int
list_array(void *arg, struct hed_object *o)
{
    struct listing *l = arg;
    const struct hed_array *a = (const struct hed_array *)o;
    struct hed_context *c = context_to_copy_in(l->remote, a->device->ordinal);
    const uint64_t size = array_row(a) * a->image.height * a->image.depth;

    if (!c || !size) {
        hed_why_set(l->why, "it has an array that cannot be read");
        return HED_ENOTSUP;
    }
    return add_extent(l->list,
                      &(struct hed_remote_extent){.about = {.kind = HED_SNAP_ARRAY,
                                                            .device = (uint32_t)a->device->ordinal,
                                                            .key = o->handle,
                                                            .size = size},
                                                  .ctx = c,
                                                  .array = a});
}

/* ---- variables ------------------------------------------------------------------------------- */

static int
list_variable(void *arg, const char *name)
{
    struct listing *l = arg;
    struct hed_context *c = l->module->ctx;
    struct hed_remote_extent e = {.about = {.kind = HED_SNAP_VARIABLE,
                                            .device = (uint32_t)c->device->ordinal,
                                            .key = l->module->object.handle,
                                            .context = c->object.handle},
                                  .ctx = c};
    const CUresult result = hed_remote_variable_known(l->remote, c, l->module->code,
                                                      l->module->code, name, &e.at, &e.about.size);
    int err;

    if (result == CUDA_ERROR_NOT_FOUND || (result == CUDA_SUCCESS && e.about.size == 0))
        return 0;
    if (result != CUDA_SUCCESS) {
        hed_why_set(l->why, "the variable %s cannot be found: CUDA error %d", name, (int)result);
        return HED_EIO;
    }
    /* Two images of a fat binary may both name it. */
    for (size_t i = l->list->count; i > 0 && l->list->all[i - 1].about.key == e.about.key; i--)
        if (strcmp(l->list->all[i - 1].about.name, name) == 0)
            return 0;
    e.name = strdup(name);
    err = e.name ? add_extent(l->list, &e) : HED_ENOMEM;
    if (err)
        free(e.name);
    return err;
}

static int
list_variables(struct listing *l)
{
    int err = 0;

    for (struct hed_context *c = l->remote->driver->contexts; c && !err; c = c->next) {
        if (!hed_context_alive(c))
            continue;
        for (struct hed_module *m = c->modules; m && !err; m = m->next) {
            l->module = m;
            err = hed_remote_variable_names(l->remote, m->code, list_variable, l);
        }
    }
    return err;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int
order_of_keys(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_extents(const void *left, const void *right)
{
    const struct hed_remote_extent *a = left, *b = right;
    int c = order_of_keys(a->ctx->object.handle, b->ctx->object.handle);

    if (!c)
        c = order_of_keys(a->about.kind, b->about.kind);
    if (!c)
        c = order_of_keys(a->about.key, b->about.key);
    return c ? c : strcmp(a->about.name, b->about.name);
}

int
hed_remote_extents_list(struct hed_remote *r, struct hed_remote_extents *out, struct hed_why *why)
{
    struct listing l = {.list = out, .remote = r, .why = why};
    int err;

    *out = (struct hed_remote_extents){.remote = r};
    hed_why_set(why, "not enough memory to list what is to be saved");
    err = hed_remote_mappings_each(r, HED_MAP_DEVICE, list_device, &l);
    if (!err)
        err = hed_handles_each(r->driver->handles, HED_KIND_PHYSICAL, list_physical, &l);
    if (!err)
        err = hed_handles_each(r->driver->handles, HED_KIND_ARRAY, list_array, &l);
    if (!err)
        err = list_variables(&l);
    if (err) {
        hed_remote_extents_free(out);
        return err;
    }
    hed_why_set(why, "%s", "");
    if (out->count)
        qsort(out->all, out->count, sizeof *out->all, compare_extents);
    return 0;
}

void
hed_remote_extents_free(struct hed_remote_extents *x)
{
    for (size_t i = 0; i < x->count; i++) {
        if (x->all[i].view)
            unmap_for_copies(x->remote, &x->all[i]);
        free(x->all[i].name);
    }
    free(x->all);
    *x = (struct hed_remote_extents){.remote = x->remote};
}

void
hed_remote_extents_rest(struct hed_remote_extents *x)
{
    size_t left = 0;

    x->bytes = x->chunks = 0;
    for (size_t i = 0; i < x->count; i++) {
        if (x->all[i].about.kind == HED_SNAP_DEVICE)
            continue;
        x->bytes += x->all[i].about.size;
        x->chunks += hed_divide_up(x->all[i].about.size, HED_EXTENT_CHUNK);
        x->all[left++] = x->all[i];
    }
    x->count = left;
}

uint64_t
hed_remote_extents_guess(struct hed_remote *r)
{
    struct hed_driver *d = r->driver;
    uint64_t bytes = 0;

    hed_lock(&d->memory_lock);
    for (int i = 0; i < d->device_count; i++)
        bytes += d->devices[i].used;
    hed_unlock(&d->memory_lock);
    return bytes;
}

void
hed_remote_extents_cut(const struct hed_remote_extents *x, struct hed_remote_chunk *out)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct hed_remote_extent *e = &x->all[i];
        uint32_t index = 0;

        for (uint64_t at = 0; at < e->about.size; at += HED_EXTENT_CHUNK)
            *out++ = (struct hed_remote_chunk){
                .extent = e,
                .offset = at,
                .size = (uint32_t)hed_min(HED_EXTENT_CHUNK, e->about.size - at),
                .index = index++,
                .id = (uint32_t)i};
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static CUresult
copy_box(struct hed_remote *r, struct hed_stream *s, struct hed_copy_side there,
         const struct hed_box *box, void *host, bool to_host)
{
    const struct hed_copy_side here = {.at = (uintptr_t)host,
                                       .pitch = box->width,
                                       .slice = box->width * box->height,
                                       .host = true};
    const struct hed_copy c = {
        .from = to_host ? there : here, .to = to_host ? here : there, .box = *box};

    /* The worker makes the copy itself if both are its own. */
    if (!there.array && hed_remote_shares(r, (uintptr_t)host, hed_box_bytes(box)))
        return hed_remote_copy(r, s, &c, false);
    return hed_remote_copy_host(r, s, &c, to_host, to_host && hed_box_bytes(box) > SMALL);
}

/* A range of an array's rows, which lie one after the other here: the rest of a row, whole rows,
 * the beginning of a row. */
static CUresult
copy_array_range(struct hed_remote *r, struct hed_stream *s, const struct hed_array *a,
                 uint64_t offset, uint64_t size, char *host, bool to_host)
{
    const uint64_t row = array_row(a), height = a->image.height;
    CUresult result = CUDA_SUCCESS;

    while (size > 0 && result == CUDA_SUCCESS) {
        const uint64_t x = offset % row, y = offset / row % height, z = offset / row / height;
        const uint64_t rows = hed_min(size / row, height - y);
        const struct hed_copy_side there = {.array = a->object.handle, .x = x, .y = y, .z = z};
        const struct hed_box box = x > 0 || rows == 0
                                       ? (struct hed_box){hed_min(row - x, size), 1, 1}
                                       : (struct hed_box){row, rows, 1};

        result = copy_box(r, s, there, &box, host, to_host);
        host += hed_box_bytes(&box);
        offset += hed_box_bytes(&box);
        size -= hed_box_bytes(&box);
    }
    return result;
}

CUresult
hed_remote_extent_copy(struct hed_remote *r, struct hed_stream *s,
                       const struct hed_remote_extent *e, uint64_t at, uint64_t offset,
                       uint64_t size, void *host, bool to_host)
{
    const struct hed_box box = {size, 1, 1};

    if (e->array)
        return copy_array_range(r, s, e->array, offset, size, host, to_host);
    if (!at)
        at = e->at + offset;
    /* A variable is outside of the arena; only the worker knows that it is memory of the device. */
    return copy_box(r, s, (struct hed_copy_side){.at = at, .pitch = size, .slice = size}, &box,
                    host, to_host);
}
