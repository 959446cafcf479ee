/* The beginning of a session: the hello, the backend, and the description of its devices.
 *
 * A hello that does not fit (another version, other calls) is answered with the reason, before
 * anything runs. Over TLS the gate has done that already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "core/session.h"
#include "remote/server/hello.h"
#include "remote/server/lease_socket.h"
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/link/link.h"

#define SLOTS 8192                         /* words in the page of slots */
#define MADE_UP_BYTES (UINT64_C(80) << 30) /* of a device of the backend that does no work */

/* ---- the backend ----------------------------------------------------------------------------- */

static enum hed_wire_backend
backend_kind(void)
{
    const char *name = hed_session_backend()->type->name;

    return strcmp(name, "cpu") == 0    ? HED_BACKEND_CPU
           : strcmp(name, "null") == 0 ? HED_BACKEND_NULL
                                       : HED_BACKEND_GPU;
}

int
hed_worker_start_backend(struct hed_worker *w, struct hed_why *why)
{
    int n = 0;

    w->top = hed_top();
    w->backend = backend_kind();
    w->no_memory = w->backend == HED_BACKEND_NULL;

    CUresult r = hed_worker_do(w, cuInit, .Flags = 0);

    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuDeviceGetCount, .count = &n);
    if (r != CUDA_SUCCESS || n < 0 || n > HED_LEASE_SOCKET_DEVICES) {
        hed_why_set(
            why,
            "the server's driver (%s) does not start: CUDA error %d; the server's log says more",
            hed_session_chain(), (int)r);
        return HED_ESTATE;
    }
    w->device_count = n;
    w->started = true;
    hed_arena_init_sizes(w);
    return 0;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
describe_by_nvml(struct hed_worker *w, int i, struct hed_wire_device *d)
{
    static const char *const names[] = {
        [NVML_DEVICE_ARCH_KEPLER] = "kepler",
        [NVML_DEVICE_ARCH_MAXWELL] = "maxwell",
        [NVML_DEVICE_ARCH_PASCAL] = "pascal",
        [NVML_DEVICE_ARCH_VOLTA] = "volta",
        [NVML_DEVICE_ARCH_TURING] = "turing",
        [NVML_DEVICE_ARCH_AMPERE] = "ampere",
        [NVML_DEVICE_ARCH_ADA] = "ada",
        [NVML_DEVICE_ARCH_HOPPER] = "hopper",
        [NVML_DEVICE_ARCH_BLACKWELL] = "blackwell",
    };
    struct hed_layer *top = w->top;
    nvmlDeviceArchitecture_t arch = 0;
    nvmlBrandType_t brand = NVML_BRAND_UNKNOWN;
    nvmlDevice_t dev = NULL;
    nvmlPciInfo_t pci;

    memset(&pci, 0, sizeof pci);
    if (hed_call_nvml(top, nvmlInit_v2, 0) != NVML_SUCCESS ||
        hed_call_nvml(top, nvmlDeviceGetHandleByIndex_v2, .index = (unsigned)i, .device = &dev) !=
            NVML_SUCCESS)
        return;
#define ASK(call, ...) ((void)hed_call_nvml(top, call, dev, __VA_ARGS__))
    ASK(nvmlDeviceGetArchitecture, &arch);
    ASK(nvmlDeviceGetBrand, &brand);
    ASK(nvmlDeviceGetPciInfo_v3, &pci);
    ASK(nvmlDeviceGetVbiosVersion, d->vbios, sizeof d->vbios);
    ASK(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_GRAPHICS, &d->clock_graphics);
    ASK(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_SM, &d->clock_sm);
    ASK(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_MEM, &d->clock_memory);
    ASK(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_VIDEO, &d->clock_video);
    ASK(nvmlDeviceGetPowerManagementDefaultLimit, &d->power_limit);
    ASK(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
        &d->temperature_slowdown);
    ASK(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
        &d->temperature_shutdown);
    ASK(nvmlDeviceGetMaxPcieLinkGeneration, &d->pcie_generation);
    ASK(nvmlDeviceGetMaxPcieLinkWidth, &d->pcie_width);
    ASK(nvmlDeviceGetNumFans, &d->fans);
#undef ASK
    d->vbios[sizeof d->vbios - 1] = 0;
    d->pci_device_id = pci.pciDeviceId;
    d->pci_subsystem_id = pci.pciSubSystemId;
    if (arch < sizeof names / sizeof names[0] && names[arch])
        (void)hed_str_copy(d->architecture, sizeof d->architecture, names[arch]);
    (void)hed_str_copy(d->brand, sizeof d->brand,
                       brand == NVML_BRAND_GEFORCE || brand == NVML_BRAND_GEFORCE_RTX ? "geforce"
                       : brand == NVML_BRAND_TESLA                                    ? "tesla"
                                                                                      : "nvidia");
}

static void
describe_attributes_of(struct hed_worker *w, int i, struct hed_wire_device *d)
{
    for (int a = 1; a < HED_WIRE_ATTRIBUTES; a++) {
        int value = 0;

        if (hed_worker_do(w, cuDeviceGetAttribute, .pi = &value, .attrib = (CUdevice_attribute)a,
                          .dev = i) != CUDA_SUCCESS)
            continue;
        /* A backend that does no work knows no attributes. */
        if (w->no_memory && value == 0)
            continue;
        d->attributes[a] = value;
        d->has_attribute[a / 64] |= UINT64_C(1) << a % 64;
    }
    d->major = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    d->minor = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    d->pci_domain = d->attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID];
    d->pci_bus = d->attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID];
    d->pci_slot = d->attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID];
}

/* Makes up a device for the backend that does no work: it gets what programs and NVIDIA's runtime
 * need to continue, the limits of a GPU, and 0 for every other attribute. */
static void
make_up_device(struct hed_wire_device *d)
{
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } made_up[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    };

    for (unsigned a = 1; a < CU_DEVICE_ATTRIBUTE_MAX && a < HED_WIRE_ATTRIBUTES; a++)
        d->has_attribute[a / 64] |= UINT64_C(1) << a % 64;
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++)
        if (!d->attributes[made_up[i].attribute])
            d->attributes[made_up[i].attribute] = made_up[i].value;
    d->major = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    d->minor = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    (void)hed_str_copy(d->name, sizeof d->name, "heddle null device");
}

uint64_t
hed_worker_device_bytes(struct hed_worker *w, int i)
{
    size_t bytes = 0;

    (void)hed_worker_do(w, cuDeviceTotalMem_v2, .bytes = &bytes, .dev = i);
    return w->no_memory && !bytes ? MADE_UP_BYTES : bytes;
}

static void
describe_device(struct hed_worker *w, int i, struct hed_wire_device *d)
{
    CUuuid uuid;

    memset(d, 0, sizeof *d);
    memset(&uuid, 0, sizeof uuid);
    d->head.kind = HED_MSG_ANSWER;
    d->head.size = sizeof *d;
    (void)hed_worker_do(w, cuDeviceGetName, .name = d->name, .len = sizeof d->name, .dev = i);
    d->name[sizeof d->name - 1] = 0;
    (void)hed_worker_do(w, cuDeviceGetUuid_v2, .uuid = &uuid, .dev = i);
    memcpy(d->uuid, &uuid, sizeof d->uuid);
    d->memory = hed_worker_device_bytes(w, i);
    if (w->start->memory_limit)
        d->memory = hed_min(d->memory, w->start->memory_limit);
    d->free = d->memory;
    d->index = i;
    d->real = w->backend == HED_BACKEND_GPU;
    (void)hed_str_copy(d->short_name, sizeof d->short_name, "remote");
    describe_attributes_of(w, i, d);
    d->clusters = d->real && d->attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] != 0;
    d->accepts_newer_ptx = w->backend == HED_BACKEND_CPU;
    if (w->no_memory)
        make_up_device(d);
    else
        describe_by_nvml(w, i, d);
}

int
hed_worker_find_devices(struct hed_worker *w)
{
    w->described = calloc((size_t)w->device_count + 1, sizeof *w->described);
    if (!w->described)
        return HED_ENOMEM;
    for (int i = 0; i < w->device_count; i++)
        describe_device(w, i, &w->described[i]);
    return 0;
}

int
hed_worker_tell_devices(struct hed_worker_channel *ch)
{
    const struct hed_worker *w = ch->worker;

    for (int i = 0; i < w->device_count; i++) {
        struct hed_wire_device *d = hed_channel_begin(ch->channel, sizeof *d);

        if (!d)
            return HED_EIO;
        if (w->described)
            *d = w->described[i];
        else
            describe_device(ch->worker, i, d);

        const int err = hed_channel_end(ch->channel, sizeof *d, i + 1 == w->device_count);

        if (err)
            return err;
    }
    return 0;
}

/* ---- welcome --------------------------------------------------------------------------------- */

static void
note_client(struct hed_worker *w, struct hed_conn *conn, const struct hed_hello *h)
{
    struct hed_worker_status *s = w->start->status;
    const char *name = hed_conn_who(conn)->name;
    const bool looks = h->capabilities & HED_LOOKS_FOR_ROOM;

    if (s) {
        (void)hed_str_copy(s->program, sizeof s->program, h->name[0] ? h->name : "?");
        atomic_store(&s->looks, looks);
    }
    /* It may come every few seconds for hours: hed_worker_has_room() logs the attempt that
     * succeeds. */
    if (s && looks)
        hed_debug(SERVER, "%s (process %u) looks for room", h->name, h->pid);
    else if (s && !w->start->link->local)
        hed_info(SERVER, "%s (process %u at %s%s%s, heddle %s) begins", h->name, h->pid,
                 w->start->peer, name[0] ? ", certificate " : "", name, h->version);
    else if (s)
        hed_info(SERVER, "%s (process %u of user %u, %s, heddle %s) begins", h->name,
                 w->start->client_pid, w->start->client_uid, w->transport->name, h->version);
}

void
hed_worker_has_room(struct hed_worker *w)
{
    struct hed_worker_status *s = w->start->status;

    if (s && atomic_exchange(&s->looks, 0))
        hed_info(SERVER, "%s (%s) comes back into device memory", s->program,
                 w->start->peer ? w->start->peer : "local");
}

int
hed_worker_welcome(struct hed_worker *w, struct hed_conn *conn, const struct hed_hello *h,
                   struct hed_why *why)
{
    struct hed_welcome a;
    int err = hed_hello_check(h, w->start->link, why);

    memset(&a, 0, sizeof a);
    if (!err)
        w->transport = hed_transport_by_id(h->transport);
    if (!err && !w->print) /* else it was a spare, and has done the following */
        err = hed_worker_print_init(w, why);
    if (!err && !w->started)
        err = hed_worker_start_backend(w, why);
    a.head.head.size = sizeof a;
    a.head.head.kind = HED_MSG_ANSWER;
    a.head.result = err ? CUDA_ERROR_SYSTEM_NOT_READY : CUDA_SUCCESS;
    a.major = HED_WIRE_MAJOR;
    a.minor = HED_WIRE_MINOR;
    if (err) {
        (void)hed_str_copy(a.text, sizeof a.text, why->text);
    } else {
        a.device_count = (uint32_t)w->device_count;
        a.capabilities = w->transport->capabilities & h->capabilities;
        if (!w->start->park_ms)
            a.capabilities &= ~(uint64_t)HED_CAN_PARK;
        if (!hed_share_is_possible(w))
            a.capabilities &= ~(uint64_t)HED_CAN_SHARE;
        w->capabilities = a.capabilities;
        hed_worker_refusals_init(w);
        memcpy(a.session, w->start->session, sizeof a.session);
        memcpy(a.secret, w->secret, sizeof a.secret);
        a.stride = w->stride;
        a.usable = w->usable;
        a.map_unit = w->map_unit;
        a.slots = w->slot_count = w->transport->capabilities & HED_CAN_SLOTS ? SLOTS : 0;
        a.driver_version = 13000;
        a.backend = w->backend;
        a.head.head.thread = w->start->channel_limit;
        note_client(w, conn, h);
    }

    const int sent = hed_conn_write(conn, &a, sizeof a);

    return err ? err : sent;
}

int
hed_do_ping(struct hed_worker_channel *ch, struct hed_msg *m)
{
    return m->flags & HED_MSG_WANTS_ANSWER ? hed_worker_answer(ch, m, CUDA_SUCCESS, NULL, 0) : 0;
}
