/* NVML: starting, the system, finding devices, and how they are connected. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "driver/nvml/nvml.h"

#define DRIVER_RELEASE "580.65.06" /* the first release that supports CUDA 13.0 */

/* ---- what the others begin with -------------------------------------------------------------- */

nvmlReturn_t
hed_nvml_ready(struct hed_layer *self)
{
    _Atomic unsigned *inits = hed_shared_inits(hed_driver_of(self));

    /* Relaxed: a program that starts NVML on one thread and uses it on another orders the two. */
    return inits && atomic_load_explicit(inits, memory_order_relaxed) ? NVML_SUCCESS
                                                                      : NVML_ERROR_UNINITIALIZED;
}

nvmlDevice_t
hed_nvml_handle(const struct hed_profile_device *info)
{
    return (nvmlDevice_t)(uintptr_t)info;
}

nvmlReturn_t
hed_nvml_find(struct hed_layer *self, nvmlDevice_t handle, const void *out,
              struct hed_nvml_device *d)
{
    const struct hed_profile_device *all;
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;

    const size_t count = hed_shared_devices(hed_driver_of(self), &all);
    const uintptr_t at = (uintptr_t)handle - (uintptr_t)all;

    /* A handle is the address of a device's description; any other value is refused without
     * dereferencing it. */
    if (!handle || !out || at % sizeof *all != 0 || at / sizeof *all >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    d->driver = hed_driver_of(self);
    d->index = at / sizeof *all;
    d->info = &all[d->index];
    d->profile = &d->info->profile;
    return NVML_SUCCESS;
}

nvmlReturn_t
hed_nvml_text(char *out, unsigned length, const char *text)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    (void)hed_str_copy(out, length, text);
    return NVML_SUCCESS;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static nvmlReturn_t
start_nvml(struct hed_layer *self)
{
    _Atomic unsigned *inits = hed_shared_inits(hed_driver_of(self));

    if (!inits)
        return NVML_ERROR_MEMORY;
    atomic_fetch_add_explicit(inits, 1, memory_order_relaxed);
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlInit_v2(struct hed_layer *self, struct hed_nvmlInit_v2 *a)
{
    return start_nvml(self);
}

static nvmlReturn_t
soft_nvmlInit(struct hed_layer *self, struct hed_nvmlInit *a)
{
    return start_nvml(self);
}

static nvmlReturn_t
soft_nvmlInitWithFlags(struct hed_layer *self, struct hed_nvmlInitWithFlags *a)
{
    return start_nvml(self);
}

static nvmlReturn_t
soft_nvmlShutdown(struct hed_layer *self, struct hed_nvmlShutdown *a)
{
    _Atomic unsigned *inits = hed_shared_inits(hed_driver_of(self));
    unsigned n = inits ? atomic_load_explicit(inits, memory_order_relaxed) : 0;

    while (n && !atomic_compare_exchange_weak_explicit(inits, &n, n - 1, memory_order_relaxed,
                                                       memory_order_relaxed))
        ;
    return n ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* ---- the system ------------------------------------------------------------------------------ */

static nvmlReturn_t
system_text(struct hed_layer *self, char *out, unsigned length, const char *text)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    return r == NVML_SUCCESS ? hed_nvml_text(out, length, text) : r;
}

static nvmlReturn_t
soft_nvmlSystemGetDriverVersion(struct hed_layer *self, struct hed_nvmlSystemGetDriverVersion *a)
{
    return system_text(self, a->version, a->length, DRIVER_RELEASE);
}

static nvmlReturn_t
soft_nvmlSystemGetNVMLVersion(struct hed_layer *self, struct hed_nvmlSystemGetNVMLVersion *a)
{
    return system_text(self, a->version, a->length, "13." DRIVER_RELEASE);
}

/* These two work before nvmlInit, since they are about the library. */
static nvmlReturn_t
soft_nvmlSystemGetCudaDriverVersion(struct hed_layer *self,
                                    struct hed_nvmlSystemGetCudaDriverVersion *a)
{
    if (!a->cudaDriverVersion)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->cudaDriverVersion = HED_DRIVER_VERSION;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlSystemGetCudaDriverVersion_v2(struct hed_layer *self,
                                       struct hed_nvmlSystemGetCudaDriverVersion_v2 *a)
{
    if (!a->cudaDriverVersion)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->cudaDriverVersion = HED_DRIVER_VERSION;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlSystemGetDriverBranch(struct hed_layer *self, struct hed_nvmlSystemGetDriverBranch *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->branchInfo)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (a->branchInfo->version != HED_NVML_VERSION(nvmlSystemDriverBranchInfo_v1_t, 1u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return hed_nvml_text(a->branchInfo->branch,
                         a->length < sizeof a->branchInfo->branch
                             ? a->length
                             : (unsigned)sizeof a->branchInfo->branch,
                         "r580");
}

static nvmlReturn_t
soft_nvmlSystemGetProcessName(struct hed_layer *self, struct hed_nvmlSystemGetProcessName *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);
    char path[64];
    char name[4096];

    if (r != NVML_SUCCESS)
        return r;
    if (!a->name || a->length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    (void)snprintf(path, sizeof path, "/proc/%u/cmdline", a->pid);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NVML_ERROR_NOT_FOUND;
    name[n] = '\0';
    /* The first word is the program; a kernel thread has none. As in NVIDIA's, a name that is too
     * long is cut. */
    (void)hed_str_copy(a->name, a->length, name);
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlUnitGetCount(struct hed_layer *self, struct hed_nvmlUnitGetCount *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r == NVML_SUCCESS && !a->unitCount)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *a->unitCount = 0;
    return r;
}

static nvmlReturn_t
soft_nvmlGetExcludedDeviceCount(struct hed_layer *self, struct hed_nvmlGetExcludedDeviceCount *a)
{
    if (!a->deviceCount)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->deviceCount = 0;
    return NVML_SUCCESS;
}

/* ---- finding devices ------------------------------------------------------------------------- */

static nvmlReturn_t
count_devices(struct hed_layer *self, unsigned *out)
{
    const struct hed_profile_device *all;
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r == NVML_SUCCESS && !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *out = (unsigned)hed_shared_devices(hed_driver_of(self), &all);
    return r;
}

static nvmlReturn_t
soft_nvmlDeviceGetCount_v2(struct hed_layer *self, struct hed_nvmlDeviceGetCount_v2 *a)
{
    return count_devices(self, a->deviceCount);
}

static nvmlReturn_t
soft_nvmlDeviceGetCount(struct hed_layer *self, struct hed_nvmlDeviceGetCount *a)
{
    return count_devices(self, a->deviceCount);
}

static nvmlReturn_t
by_index(struct hed_layer *self, unsigned index, nvmlDevice_t *out)
{
    const struct hed_profile_device *all;
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;
    if (!out || index >= hed_shared_devices(hed_driver_of(self), &all))
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = hed_nvml_handle(&all[index]);
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByIndex_v2(struct hed_layer *self,
                                   struct hed_nvmlDeviceGetHandleByIndex_v2 *a)
{
    return by_index(self, a->index, a->device);
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByIndex(struct hed_layer *self, struct hed_nvmlDeviceGetHandleByIndex *a)
{
    return by_index(self, a->index, a->device);
}

/* The device for which `is` returns true. */
typedef bool (*is_fn)(const struct hed_profile_device *info, const void *what);

static nvmlReturn_t
find_nvml_device(struct hed_layer *self, is_fn is, const void *what, nvmlDevice_t *out)
{
    const struct hed_profile_device *all;
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;
    if (!what || !out)
        return NVML_ERROR_INVALID_ARGUMENT;

    const size_t count = hed_shared_devices(hed_driver_of(self), &all);

    for (size_t i = 0; i < count; i++) {
        if (is(&all[i], what)) {
            *out = hed_nvml_handle(&all[i]);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool
has_uuid_text(const struct hed_profile_device *info, const void *what)
{
    char text[HED_PROFILE_UUID_TEXT];

    hed_profile_uuid_text(info->uuid, text);
    return strcasecmp(text, what) == 0;
}

static bool
has_uuid_bytes(const struct hed_profile_device *info, const void *what)
{
    return memcmp(info->uuid, what, sizeof info->uuid) == 0;
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByUUID(struct hed_layer *self, struct hed_nvmlDeviceGetHandleByUUID *a)
{
    return find_nvml_device(self, has_uuid_text, a->uuid, a->device);
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByUUIDV(struct hed_layer *self, struct hed_nvmlDeviceGetHandleByUUIDV *a)
{
    char text[sizeof a->uuid->value.str + 1] = "";

    if (!a->uuid)
        return find_nvml_device(self, has_uuid_text, NULL, a->device);
    if (a->uuid->version != HED_NVML_VERSION(nvmlUUID_v1_t, 1u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (a->uuid->type == NVML_UUID_TYPE_BINARY)
        return find_nvml_device(self, has_uuid_bytes, a->uuid->value.bytes, a->device);
    if (a->uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(text, a->uuid->value.str, sizeof a->uuid->value.str);
    return find_nvml_device(self, has_uuid_text, text, a->device);
}

/* "0:1:0.0", "00000000:01:00.0", "01:00.0" */
static bool
has_bus_id(const struct hed_profile_device *info, const void *what)
{
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    unsigned function = 0;

    if (sscanf(what, "%8x:%8x:%8x.%1x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        function = 0;
        if (sscanf(what, "%8x:%8x.%1x", &bus, &slot, &function) < 2)
            return false;
    }
    return domain == (unsigned)info->pci_domain && bus == (unsigned)info->pci_bus &&
           slot == (unsigned)info->pci_slot && function == 0;
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByPciBusId_v2(struct hed_layer *self,
                                      struct hed_nvmlDeviceGetHandleByPciBusId_v2 *a)
{
    return find_nvml_device(self, has_bus_id, a->pciBusId, a->device);
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleByPciBusId(struct hed_layer *self,
                                   struct hed_nvmlDeviceGetHandleByPciBusId *a)
{
    return find_nvml_device(self, has_bus_id, a->pciBusId, a->device);
}

bool
hed_nvml_serial(const struct hed_profile_device *info, char out[HED_NVML_SERIAL])
{
    uint64_t n;

    if (strcmp(info->profile.brand, "geforce") == 0)
        return false;
    memcpy(&n, info->uuid, sizeof n);
    (void)snprintf(out, HED_NVML_SERIAL, "%013llu", (unsigned long long)(n % 10000000000000ull));
    return true;
}

static bool
has_serial(const struct hed_profile_device *info, const void *what)
{
    char text[HED_NVML_SERIAL];

    return hed_nvml_serial(info, text) && strcmp(text, what) == 0;
}

static nvmlReturn_t
soft_nvmlDeviceGetHandleBySerial(struct hed_layer *self, struct hed_nvmlDeviceGetHandleBySerial *a)
{
    return find_nvml_device(self, has_serial, a->serial, a->device);
}

/* ---- how they are connected ------------------------------------------------------------------ */

/* All devices are in this process's memory: as close together as the devices of one CPU. */
#define DISTANCE NVML_TOPOLOGY_NODE

static nvmlReturn_t
soft_nvmlDeviceGetTopologyCommonAncestor(struct hed_layer *self,
                                         struct hed_nvmlDeviceGetTopologyCommonAncestor *a)
{
    struct hed_nvml_device one;
    struct hed_nvml_device two;
    nvmlReturn_t r = hed_nvml_find(self, a->device1, a->pathInfo, &one);

    if (r == NVML_SUCCESS)
        r = hed_nvml_find(self, a->device2, a->pathInfo, &two);
    if (r == NVML_SUCCESS)
        *a->pathInfo = one.index == two.index ? NVML_TOPOLOGY_INTERNAL : DISTANCE;
    return r;
}

/* Writes all devices but one. *count is the room on entry, and the number of devices on return. */
static nvmlReturn_t
put_other_devices(struct hed_layer *self, size_t but, unsigned *count, nvmlDevice_t *out)
{
    const struct hed_profile_device *all;
    const size_t n = hed_shared_devices(hed_driver_of(self), &all);
    const unsigned room = out ? *count : 0;
    unsigned k = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == but)
            continue;
        if (k < room)
            out[k] = hed_nvml_handle(&all[i]);
        k++;
    }
    *count = out && k > room ? room : k;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetTopologyNearestGpus(struct hed_layer *self,
                                      struct hed_nvmlDeviceGetTopologyNearestGpus *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->count, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->level != DISTANCE) {
        *a->count = 0;
        return NVML_SUCCESS;
    }
    return put_other_devices(self, d.index, a->count, a->deviceArray);
}

static nvmlReturn_t
soft_nvmlSystemGetTopologyGpuSet(struct hed_layer *self, struct hed_nvmlSystemGetTopologyGpuSet *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;
    return a->count ? put_other_devices(self, SIZE_MAX, a->count, a->deviceArray)
                    : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t
soft_nvmlDeviceGetP2PStatus(struct hed_layer *self, struct hed_nvmlDeviceGetP2PStatus *a)
{
    struct hed_nvml_device d;
    nvmlReturn_t r = hed_nvml_find(self, a->device1, a->p2pStatus, &d);

    if (r == NVML_SUCCESS)
        r = hed_nvml_find(self, a->device2, a->p2pStatus, &d);
    if (r == NVML_SUCCESS && (unsigned)a->p2pIndex >= NVML_P2P_CAPS_INDEX_UNKNOWN)
        r = NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *a->p2pStatus = a->p2pIndex == NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_NOT_SUPPORTED
                                                                  : NVML_P2P_STATUS_OK;
    return r;
}

static nvmlReturn_t
soft_nvmlDeviceOnSameBoard(struct hed_layer *self, struct hed_nvmlDeviceOnSameBoard *a)
{
    struct hed_nvml_device one;
    struct hed_nvml_device two;
    nvmlReturn_t r = hed_nvml_find(self, a->device1, a->onSameBoard, &one);

    if (r == NVML_SUCCESS)
        r = hed_nvml_find(self, a->device2, a->onSameBoard, &two);
    if (r == NVML_SUCCESS)
        *a->onSameBoard = one.index == two.index;
    return r;
}

/* ---- confidential computing: there is none --------------------------------------------------- */

#define SETTINGS_VERSION (sizeof(nvmlSystemConfComputeSettings_v1_t) | 1u << 24)

static nvmlReturn_t
soft_nvmlSystemGetConfComputeSettings(struct hed_layer *self,
                                      struct hed_nvmlSystemGetConfComputeSettings *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->settings)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (a->settings->version != SETTINGS_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *a->settings = (nvmlSystemConfComputeSettings_v1_t){.version = SETTINGS_VERSION};
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlSystemGetConfComputeState(struct hed_layer *self,
                                   struct hed_nvmlSystemGetConfComputeState *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r == NVML_SUCCESS && !a->state)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *a->state = (nvmlConfComputeSystemState_t){0};
    return r;
}

static nvmlReturn_t
soft_nvmlSystemGetConfComputeCapabilities(struct hed_layer *self,
                                          struct hed_nvmlSystemGetConfComputeCapabilities *a)
{
    const nvmlReturn_t r = hed_nvml_ready(self);

    if (r == NVML_SUCCESS && !a->capabilities)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *a->capabilities = (nvmlConfComputeSystemCaps_t){0};
    return r;
}

const struct hed_nvml_ops hed_calls_nvml_system = {
    .nvmlInit_v2 = soft_nvmlInit_v2,
    .nvmlInit = soft_nvmlInit,
    .nvmlInitWithFlags = soft_nvmlInitWithFlags,
    .nvmlShutdown = soft_nvmlShutdown,
    .nvmlSystemGetDriverVersion = soft_nvmlSystemGetDriverVersion,
    .nvmlSystemGetNVMLVersion = soft_nvmlSystemGetNVMLVersion,
    .nvmlSystemGetCudaDriverVersion = soft_nvmlSystemGetCudaDriverVersion,
    .nvmlSystemGetCudaDriverVersion_v2 = soft_nvmlSystemGetCudaDriverVersion_v2,
    .nvmlSystemGetDriverBranch = soft_nvmlSystemGetDriverBranch,
    .nvmlSystemGetProcessName = soft_nvmlSystemGetProcessName,
    .nvmlSystemGetConfComputeSettings = soft_nvmlSystemGetConfComputeSettings,
    .nvmlSystemGetConfComputeState = soft_nvmlSystemGetConfComputeState,
    .nvmlSystemGetConfComputeCapabilities = soft_nvmlSystemGetConfComputeCapabilities,
    .nvmlSystemGetTopologyGpuSet = soft_nvmlSystemGetTopologyGpuSet,
    .nvmlUnitGetCount = soft_nvmlUnitGetCount,
    .nvmlGetExcludedDeviceCount = soft_nvmlGetExcludedDeviceCount,
    .nvmlDeviceGetCount_v2 = soft_nvmlDeviceGetCount_v2,
    .nvmlDeviceGetCount = soft_nvmlDeviceGetCount,
    .nvmlDeviceGetHandleByIndex_v2 = soft_nvmlDeviceGetHandleByIndex_v2,
    .nvmlDeviceGetHandleByIndex = soft_nvmlDeviceGetHandleByIndex,
    .nvmlDeviceGetHandleByUUID = soft_nvmlDeviceGetHandleByUUID,
    .nvmlDeviceGetHandleByUUIDV = soft_nvmlDeviceGetHandleByUUIDV,
    .nvmlDeviceGetHandleByPciBusId_v2 = soft_nvmlDeviceGetHandleByPciBusId_v2,
    .nvmlDeviceGetHandleByPciBusId = soft_nvmlDeviceGetHandleByPciBusId,
    .nvmlDeviceGetHandleBySerial = soft_nvmlDeviceGetHandleBySerial,
    .nvmlDeviceGetTopologyCommonAncestor = soft_nvmlDeviceGetTopologyCommonAncestor,
    .nvmlDeviceGetTopologyNearestGpus = soft_nvmlDeviceGetTopologyNearestGpus,
    .nvmlDeviceGetP2PStatus = soft_nvmlDeviceGetP2PStatus,
    .nvmlDeviceOnSameBoard = soft_nvmlDeviceOnSameBoard,
};
