/* HED_MSG_NVML: questions of a client about its devices. Only the questions that the remote backend
 * sends are answered (travel= in the spec). On the wire, a device is CUDA's number for it on the
 * server, plus one.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/pack.h"
#include "gen/nvml_handles.h"
#include "gen/nvml_travel.h"
#include "gen/nvml_wire.h"
#include "remote/server/worker/worker.h"

#define UUID_TEXT 48

#define nvml_do(w, call, ...) hed_call_nvml((w)->top, call, __VA_ARGS__)

/* NVML's numbers may differ from CUDA's, but the UUID is the same. */
static nvmlReturn_t
find_device_by_uuid(struct hed_worker *w, unsigned ordinal, nvmlDevice_t *out)
{
    CUuuid id = {{0}};
    char text[UUID_TEXT];
    const unsigned char *b = (const unsigned char *)id.bytes;

    if (hed_worker_do(w, cuDeviceGetUuid_v2, .uuid = &id, .dev = (CUdevice)ordinal) ==
        CUDA_SUCCESS) {
        (void)snprintf(text, sizeof text,
                       "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
                       b[12], b[13], b[14], b[15]);
        if (nvml_do(w, nvmlDeviceGetHandleByUUID, .uuid = text, .device = out) == NVML_SUCCESS)
            return NVML_SUCCESS;
    }
    return nvml_do(w, nvmlDeviceGetHandleByIndex_v2, .index = ordinal, .device = out);
}

static int
translate_nvml_device(void *arg, const char *kind, uint64_t *handle)
{
    struct hed_worker *w = arg;
    nvmlDevice_t device = NULL;

    if (strcmp(kind, "device") != 0 || *handle == 0 || *handle > (uint64_t)w->device_count)
        return HED_ENOTFOUND;
    if (find_device_by_uuid(w, (unsigned)(*handle - 1), &device) != NVML_SUCCESS)
        return HED_ENOTFOUND;
    *handle = (uint64_t)(uintptr_t)device;
    return 0;
}

static int
hide_nvml_handle(void *arg, const char *kind, uint64_t *handle)
{
    (void)arg;
    (void)kind;
    *handle = 0;
    return 0;
}

static int
refuse_nvml_address(void *arg, const char *kind, uint64_t address)
{
    (void)arg;
    (void)kind;
    return address ? HED_ENOTSUP : 0;
}

/* NVML is initialised once; the end of the process shuts it down. */
static bool
is_nvml_ready(struct hed_worker *w)
{
    /* Relaxed: NVML counts initialisations, so a second one does no harm. */
    if (atomic_load_explicit(&w->nvml, memory_order_relaxed))
        return true;
    if (!w->top->nvml || nvml_do(w, nvmlInit_v2, 0) != NVML_SUCCESS)
        return false;
    atomic_store_explicit(&w->nvml, 1, memory_order_relaxed);
    return true;
}

static nvmlReturn_t
perform_nvml(struct hed_worker *w, enum hed_nvml_call id, void *args, bool *done)
{
    uint64_t rooms[HED_NVML_ROOMS];

    if (!is_nvml_ready(w))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (hed_nvml_each_address(id, args, refuse_nvml_address, NULL) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!hed_nvml_sizes_fit(id, args) || hed_nvml_each_in(id, args, translate_nvml_device, w) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    hed_nvml_rooms(id, args, rooms);

    const nvmlReturn_t r = hed_nvml_invoke(w->top, id, args);

    if (!hed_nvml_rooms_fit(id, args, rooms) && r == NVML_SUCCESS) {
        hed_warn(SERVER, "%s returned more than there was room for", hed_nvml_info[id].name);
        return NVML_ERROR_UNKNOWN;
    }
    *done = true;
    (void)hed_nvml_each_new(id, args, hide_nvml_handle, NULL);
    (void)hed_nvml_each_out(id, args, hide_nvml_handle, NULL);
    (void)hed_nvml_each_failed(id, args, hide_nvml_handle, NULL);
    return r;
}

static int
answer_nvml(struct hed_worker_channel *ch, const struct hed_msg *m, nvmlReturn_t r,
            const void *args)
{
    static const size_t room = HED_MSG_MAX - sizeof(struct hed_answer);
    uint8_t *body = hed_arena_alloc(&ch->arena, room, 16);
    struct hed_enc e = hed_enc_over(body, body ? room : 0);

    if (!body)
        return HED_ENOMEM;
    hed_nvml_put_reply(&e, (enum hed_nvml_call)m->call, args, (int)r);
    if (e.err)
        return hed_worker_answer(ch, m, NVML_ERROR_NOT_SUPPORTED, NULL, 0);
    return hed_worker_answer(ch, m, (int)r, body, (size_t)(e.at - body));
}

int
hed_do_nvml(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_call_body *b = (const struct hed_call_body *)(m + 1);
    const enum hed_nvml_call id = (enum hed_nvml_call)m->call;
    bool done = false;

    if (id == 0 || id >= HED_NVML_CALLS || !(m->flags & HED_MSG_WANTS_ANSWER) ||
        b->request > m->size - sizeof *m - sizeof *b)
        return HED_EFORMAT;
    /* A client may not ask about other processes on the machine. */
    if (!(hed_nvml_info[id].flags & HED_CALL_TRAVEL)) {
        hed_warn(SERVER, "a client sent %s, which clients may not call", hed_nvml_info[id].name);
        return hed_worker_answer(ch, m, NVML_ERROR_NOT_SUPPORTED, NULL, 0);
    }

    void *args = hed_arena_alloc(&ch->arena, HED_NVML_MAX_ARGS, 16);
    struct hed_dec dec = hed_dec_over(b + 1, b->request, &ch->arena);

    if (!args)
        return HED_ENOMEM;
    memset(args, 0, hed_nvml_info[id].size);
    hed_nvml_get_request(&dec, id, args);
    if (dec.err) {
        hed_warn(SERVER, "%s: %s", hed_nvml_info[id].name, hed_err_text(dec.err));
        return HED_EFORMAT;
    }
    /* The order of these questions does not matter. */
    hed_ticket_pass(ch);

    const nvmlReturn_t r = perform_nvml(ch->worker, id, args, &done);

    return done ? answer_nvml(ch, m, r, args) : hed_worker_answer(ch, m, (int)r, NULL, 0);
}
