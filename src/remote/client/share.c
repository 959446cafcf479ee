/* Memory and events of other programs that use the same server (HED_MSG_SHARE): the machine's keys
 * (driver/machine.h), and physical memory as descriptors.
 *
 * A key goes through the worker to the server's listener, which knows what it opens and for whom. A
 * descriptor that the program exports is a small file in memory with the key. So it can be passed
 * on like any other, and only the server decides what it is good for.
 *
 * A program that has such memory or events cannot be taken to another worker; move/session/pause.c
 * asks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sealed.h"
#include "driver/driver.h"
#include "remote/client/memory.h"
#include "remote/client/queue.h"

_Static_assert(HED_MACHINE_KEY == HED_SHARE_KEY, "the same keys");
_Static_assert(HED_PHYSICAL_OWNER == HED_SHARE_OWNER, "the same owners");

static int
error_of_share(CUresult r)
{
    switch (r) {
    case CUDA_SUCCESS:
        return 0;
    case CUDA_ERROR_INVALID_CONTEXT:
        return HED_ESTATE;
    case CUDA_ERROR_INVALID_HANDLE:
        return HED_ENOTFOUND;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return HED_ENOMEM;
    case CUDA_ERROR_NOT_SUPPORTED:
        return HED_ENOTSUP;
    default:
        return HED_EIO;
    }
}

static bool
share_is_possible(void *m)
{
    return hed_remote_of(m)->capabilities & HED_CAN_SHARE;
}

/* Asks the worker and waits for its answer. */
static int
ask_to_share(struct hed_remote *r, uint64_t context, const struct hed_share_body *what,
             struct hed_share_answer *a)
{
    return share_is_possible(r)
               ? error_of_share(hed_remote_send_share(r, context, 0, what, false, a))
               : HED_ENOTSUP;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int
offer_at_worker(struct hed_remote *r, const struct hed_share_body *what, uint8_t key[HED_SHARE_KEY])
{
    struct hed_share_answer a;
    const int err = ask_to_share(r, hed_remote_current(r), what, &a);

    if (!err) {
        memcpy(key, a.key, HED_SHARE_KEY);
        /* Relaxed: whoever tells others of the memory has done so after this. */
        atomic_store_explicit(&r->memory->shared, true, memory_order_relaxed);
        hed_remote_mapping_offered(r, what->name ? HED_MAP_PHYSICAL : HED_MAP_DEVICE,
                                   what->name ? what->name : what->at);
    }
    return err;
}

static int
key_for_block(void *m, uint64_t at, uint64_t size, const uint8_t *owner,
              uint8_t key[HED_MACHINE_KEY])
{
    struct hed_share_body what = {.op = HED_SHARE_OFFER, .at = at, .size = size};

    memcpy(what.owner, owner, sizeof what.owner);
    return offer_at_worker(hed_remote_of(m), &what, key);
}

/* The program's number of a device of the server; -1 if it does not see it. */
static int
device_of_ordinal(const struct hed_remote *r, int ordinal)
{
    for (int i = 0; i < r->device_count; i++)
        if (r->devices[i].ordinal == ordinal)
            return i;
    return -1;
}

static int
open_by_key(void *m, const uint8_t key[HED_MACHINE_KEY], uint8_t *owner,
            struct hed_physical_memory **out)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_share_body what = {.op = HED_SHARE_OPEN, .name = hed_remote_physical_number(r)};
    struct hed_share_answer a;

    memcpy(what.key, key, sizeof what.key);

    const int err = ask_to_share(r, hed_remote_current(r), &what, &a);

    if (err)
        return err;
    memcpy(owner, a.owner, sizeof a.owner);
    return hed_remote_physical_adopt(r, what.name, device_of_ordinal(r, a.device), a.size, out);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* What the file has. It may be anything that a program was given. */
struct key_file {
    char magic[8];
    uint8_t key[HED_SHARE_KEY];
};

static const char magic[8] = "HEDKEY1";

int
hed_remote_physical_export(void *m, struct hed_physical_memory *p, const uint8_t *owner, int *fd)
{
    struct hed_share_body what = {.op = HED_SHARE_OFFER, .name = hed_remote_physical_name(p)};
    struct key_file f;
    int err;

    memcpy(what.owner, owner, sizeof what.owner);
    memcpy(f.magic, magic, sizeof f.magic);
    err = offer_at_worker(hed_remote_of(m), &what, f.key);
    return err ? err : hed_fd_write_sealed("heddle-key", &f, sizeof f, fd);
}

int
hed_remote_physical_import(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out)
{
    struct key_file f;

    if (hed_fd_read_whole(fd, &f, sizeof f) != 0 || memcmp(f.magic, magic, sizeof magic) != 0)
        return HED_EINVAL;
    return open_by_key(m, f.key, owner, out);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int
key_for_event(void *m, struct hed_event *e, uint8_t key[HED_MACHINE_KEY])
{
    struct hed_remote *r = hed_remote_of(m);
    const struct hed_share_body what = {.op = HED_SHARE_EVENT_OFFER, .name = e->object.handle};
    struct hed_share_answer a;

    if (!share_is_possible(r))
        return HED_ENOTSUP;
    hed_remote_need_event(r, e);

    const int err = ask_to_share(r, e->ctx->object.handle, &what, &a);

    if (!err)
        memcpy(key, a.key, HED_MACHINE_KEY);
    return err;
}

/* Nobody else knows the event yet. */
static int
event_by_key(void *m, struct hed_event *e, const uint8_t key[HED_MACHINE_KEY])
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_share_body what = {.op = HED_SHARE_EVENT_OPEN, .name = e->object.handle};
    struct hed_share_answer a;

    memcpy(what.key, key, sizeof what.key);

    const int err = ask_to_share(r, e->ctx->object.handle, &what, &a);

    /* Release: as in hed_remote_need_event(). */
    if (!err)
        atomic_store_explicit(&e->mirrored, true, memory_order_release);
    return err;
}

/* ---- other workers --------------------------------------------------------------------------- */

static int
note_offered(void *arg, const struct hed_remote_mapping *m)
{
    *(bool *)arg |= m->offered;
    return 0;
}

static int
note_shared_event(void *arg, struct hed_object *o)
{
    *(bool *)arg |= hed_remote_event_is_shared((const struct hed_event *)o);
    return 0;
}

bool
hed_remote_is_sharing(struct hed_remote *r)
{
    /* Relaxed: the program is held. */
    bool shares = atomic_load_explicit(&r->memory->opened, memory_order_relaxed) > 0;
    int err = hed_remote_mappings_each(r, HED_MAP_DEVICE, note_offered, &shares);

    if (!err)
        err = hed_remote_mappings_each(r, HED_MAP_PHYSICAL, note_offered, &shares);
    if (!err)
        err = hed_handles_each(r->driver->handles, HED_KIND_EVENT, note_shared_event, &shares);
    return shares || err; /* without memory to look, it is not safe to go on */
}

const struct hed_machine_keys hed_remote_keys = {
    .possible = share_is_possible,
    .offer = key_for_block,
    .open = open_by_key,
    .event_offer = key_for_event,
    .event_open = event_by_key,
};
