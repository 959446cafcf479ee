/* Memory between clients: HED_MSG_SHARE.
 *
 *   offer: the backend's memory ── a descriptor ──> listener (lease_socket.h) ── a key ──> client
 *   open:  client ── the key ──> listener ── the descriptor ──> the backend's memory, which is then
 *          like other physical memory of the client, but in nobody's lease
 *
 * The client maps it where it likes, as a view (memory.c). What happens to the lease of a client
 * that no longer has what others have opened is told in listener/offers.h.
 */
#include "remote/server/worker/share.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/lease_socket.h"
#include "remote/server/worker/memory.h"

bool
hed_share_is_possible(struct hed_worker *w)
{
    int can = 0;

    return w->start->offers && w->start->lease_socket > 0 && !w->no_memory && w->device_count > 0 &&
           hed_worker_do(w, cuDeviceGetAttribute, .pi = &can,
                         .attrib = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                         .dev = 0) == CUDA_SUCCESS &&
           can;
}

CUresult
hed_share_result(int err)
{
    switch (err) {
    case 0:
        return CUDA_SUCCESS;
    case HED_ESTATE:
        return CUDA_ERROR_INVALID_CONTEXT;
    case HED_ENOTFOUND:
        return CUDA_ERROR_INVALID_HANDLE;
    case HED_EACCESS:
    case HED_ENOTSUP:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

int
hed_share_offer(struct hed_worker *w, const struct hed_lease_socket_ask *what, int fd,
                uint8_t key[HED_SHARE_KEY])
{
    struct hed_lease_socket_ask ask = *what;
    struct hed_lease_socket_answer answer;

    ask.kind = HED_LEASE_SOCKET_OFFER;

    const int err = hed_lease_exchange(w, &ask, fd, &answer, NULL);

    if (!err)
        memcpy(key, answer.key, HED_SHARE_KEY);
    else if (err == HED_ELIMIT)
        hed_warn(SERVER, "the client has reached the limit of what it may share with others");
    return err;
}

uint64_t
hed_share_withdraw(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY])
{
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_WITHDRAW};
    struct hed_lease_socket_answer answer;

    memcpy(ask.key, key, sizeof ask.key);
    return hed_lease_exchange(w, &ask, -1, &answer, NULL) == 0 ? answer.bytes : 0;
}

void
hed_share_close(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY])
{
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_CLOSE};
    struct hed_lease_socket_answer answer;

    memcpy(ask.key, key, sizeof ask.key);
    (void)hed_lease_exchange(w, &ask, -1, &answer, NULL);
}

/* ---- offering -------------------------------------------------------------------------------- */

/* What is offered: a block or physical memory, of a device. */
struct offered {
    int device;
    uint64_t size;
    uint64_t real; /* the backend's handle; of a block, 0 */
    uint64_t at;
    bool *done;
    uint8_t *key;
};

/* False if it is not there. */
static bool
find_offered(struct hed_worker *w, const struct hed_share_body *b, struct offered *out)
{
    if (b->name) {
        struct hed_physical_made *p = hed_physical_by_name(w->memory, b->name);

        if (!p || p->released || p->opened || p->device < 0)
            return false;
        *out = (struct offered){.device = p->device,
                                .size = p->size,
                                .real = p->real,
                                .done = &p->offered,
                                .key = p->key};
        return true;
    }

    struct hed_mapping *p = hed_mapping_find(w->memory, b->at);

    if (!p || p->kind != HED_MAPPING_BLOCK || p->at != b->at || p->size != b->size || p->missing)
        return false;
    *out = (struct offered){
        .device = p->device, .size = p->size, .at = p->at, .done = &p->offered, .key = p->key};
    return true;
}

static CUresult
export_memory(struct hed_worker *w, const struct offered *o, int *fd)
{
    CUmemGenericAllocationHandle handle = o->real;
    CUresult r = CUDA_SUCCESS;

    if (!o->real) /* it was released when it was mapped */
        r = hed_worker_do(w, cuMemRetainAllocationHandle, .handle = &handle,
                          .addr = (void *)(uintptr_t)o->at);
    if (r != CUDA_SUCCESS)
        return r;
    r = hed_worker_do(w, cuMemExportToShareableHandle, .shareableHandle = fd, .handle = handle,
                      .handleType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (!o->real)
        (void)hed_worker_do(w, cuMemRelease, .handle = handle);
    return r;
}

static int
offer_client_memory(struct hed_worker *w, const struct hed_share_body *b,
                    struct hed_share_answer *a, CUresult *r)
{
    struct offered o;
    int fd = -1;

    if (!find_offered(w, b, &o))
        return hed_memory_missing(w);
    if (!*o.done) {
        struct hed_lease_socket_ask ask = {
            .device = o.device, .bytes = o.size, .thing = HED_LEASE_SOCKET_MEMORY};

        memcpy(ask.owner, b->owner, sizeof ask.owner);
        *r = export_memory(w, &o, &fd);
        if (*r != CUDA_SUCCESS) {
            hed_warn(SERVER, "memory cannot be shared with other clients: CUDA error %d", (int)*r);
            return 0;
        }
        *r = hed_share_result(hed_share_offer(w, &ask, fd, o.key));
        (void)close(fd);
        *o.done = *r == CUDA_SUCCESS;
    }
    if (*r == CUDA_SUCCESS)
        memcpy(a->key, o.key, sizeof a->key);
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Makes memory of a descriptor, which is closed. */
static CUresult
import_memory(struct hed_worker *w, const struct hed_lease_socket_answer *what, int fd,
              uint64_t *real)
{
    CUmemGenericAllocationHandle handle = 0;
    const bool sensible = fd >= 0 && what->device >= 0 && what->device < w->device_count &&
                          what->bytes && what->bytes % w->map_unit == 0;
    const CUresult r = sensible
                           ? hed_worker_do(w, cuMemImportFromShareableHandle, .handle = &handle,
                                           .osHandle = (void *)(uintptr_t)fd,
                                           .shHandleType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                           : CUDA_ERROR_INVALID_HANDLE;

    if (fd >= 0)
        (void)close(fd);
    *real = handle;
    return r;
}

static int
open_client_memory(struct hed_worker *w, const struct hed_share_body *b, struct hed_share_answer *a,
                   CUresult *r)
{
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_OPEN,
                                       .thing = HED_LEASE_SOCKET_MEMORY};
    struct hed_physical_made p = {.name = b->name, .opened = true};
    struct hed_lease_socket_answer what;
    int fd = -1;

    if (b->name == 0 || hed_physical_by_name(w->memory, b->name))
        return HED_EFORMAT;
    memcpy(ask.key, b->key, sizeof ask.key);
    memcpy(p.key, b->key, sizeof p.key);
    *r = hed_share_result(hed_lease_exchange(w, &ask, -1, &what, &fd));
    if (*r != CUDA_SUCCESS)
        return 0;
    *r = import_memory(w, &what, fd, &p.real);
    p.size = what.bytes;
    p.device = what.device;
    if (*r == CUDA_SUCCESS && hed_physical_enter(w->memory, &p) != 0) {
        (void)hed_worker_do(w, cuMemRelease, .handle = p.real);
        *r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (*r != CUDA_SUCCESS) {
        hed_warn(SERVER, "memory of another client cannot be opened: CUDA error %d", (int)*r);
        hed_share_close(w, b->key);
        return 0;
    }
    a->size = p.size;
    a->device = p.device;
    memcpy(a->owner, what.owner, sizeof a->owner);
    return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

int
hed_do_share(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_share_body *b = (const struct hed_share_body *)m;
    struct hed_worker *w = ch->worker;
    struct hed_share_answer a;
    CUresult r = CUDA_SUCCESS;
    int err;

    memset(&a, 0, sizeof a);
    if (!(w->capabilities & HED_CAN_SHARE))
        return HED_EFORMAT;
    switch (b->op) {
    case HED_SHARE_OFFER:
        err = offer_client_memory(w, b, &a, &r);
        break;
    case HED_SHARE_OPEN:
        err = open_client_memory(w, b, &a, &r);
        break;
    default:
        err = hed_shared_event_do(ch, b, a.key, &r);
        break;
    }
    if (err)
        return err;
    if (m->flags & HED_MSG_WANTS_ANSWER)
        return hed_worker_answer_with(ch, m, (int)r, &a, sizeof a, 0);
    hed_worker_failed(w, m->context, r);
    return 0;
}
