/* NVML: what a device is. Its names and numbers, its position on the bus, its modes. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "driver/nvml/nvml.h"

/* ---- names ----------------------------------------------------------------------------------- */

static nvmlReturn_t
soft_nvmlDeviceGetName(struct hed_layer *self, struct hed_nvmlDeviceGetName *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->name, &d);

    return r == NVML_SUCCESS ? hed_nvml_text(a->name, a->length, d.profile->name) : r;
}

static nvmlReturn_t
soft_nvmlDeviceGetUUID(struct hed_layer *self, struct hed_nvmlDeviceGetUUID *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->uuid, &d);
    char text[HED_PROFILE_UUID_TEXT];

    if (r != NVML_SUCCESS)
        return r;
    hed_profile_uuid_text(d.info->uuid, text);
    return hed_nvml_text(a->uuid, a->length, text);
}

static nvmlReturn_t
soft_nvmlDeviceGetSerial(struct hed_layer *self, struct hed_nvmlDeviceGetSerial *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->serial, &d);
    char text[HED_NVML_SERIAL];

    if (r != NVML_SUCCESS)
        return r;
    return hed_nvml_serial(d.info, text) ? hed_nvml_text(a->serial, a->length, text)
                                         : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t
soft_nvmlDeviceGetVbiosVersion(struct hed_layer *self, struct hed_nvmlDeviceGetVbiosVersion *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->version, &d);

    return r == NVML_SUCCESS ? hed_nvml_text(a->version, a->length, d.profile->vbios) : r;
}

static nvmlBrandType_t
nvml_brand(const struct hed_profile *p)
{
    static const struct {
        const char *name;
        nvmlBrandType_t brand;
    } brands[] = {
        {"tesla", NVML_BRAND_TESLA},           {"geforce", NVML_BRAND_GEFORCE},
        {"nvidia", NVML_BRAND_NVIDIA},         {"quadro", NVML_BRAND_QUADRO},
        {"nvidia_rtx", NVML_BRAND_NVIDIA_RTX}, {"titan", NVML_BRAND_TITAN},
    };

    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++)
        if (strcmp(brands[i].name, p->brand) == 0)
            return brands[i].brand;
    return NVML_BRAND_UNKNOWN;
}

static unsigned
nvml_architecture(const struct hed_profile *p)
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

    for (unsigned i = NVML_DEVICE_ARCH_KEPLER; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], p->architecture) == 0)
            return i;
    return UINT32_MAX;
}

/* Arithmetic lanes in a multiprocessor, which NVIDIA calls cores. */
static unsigned
cores_per_multiprocessor(const struct hed_profile *p)
{
    const bool few = p->major < 8 || (p->major == 8 && p->minor == 0);

    return (unsigned)p->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] * (few ? 64 : 128);
}

HED_NVML_ANSWER(nvmlDeviceGetBrand, type, nvml_brand(d.profile))
HED_NVML_ANSWER(nvmlDeviceGetArchitecture, arch, nvml_architecture(d.profile))
HED_NVML_ANSWER(nvmlDeviceGetNumGpuCores, numCores, cores_per_multiprocessor(d.profile))
HED_NVML_ANSWER(nvmlDeviceGetIndex, index, (unsigned)d.index)
HED_NVML_ANSWER(nvmlDeviceGetMinorNumber, minorNumber, (unsigned)d.index)
HED_NVML_ANSWER(nvmlDeviceGetModuleId, moduleId, (unsigned)d.index)
HED_NVML_ANSWER(nvmlDeviceGetBoardId, boardId, (unsigned)d.info->pci_bus << 8)
HED_NVML_ANSWER(nvmlDeviceGetMultiGpuBoard, multiGpuBool, 0)
HED_NVML_REFUSE(nvmlDeviceGetBoardPartNumber, partNumber)
HED_NVML_REFUSE(nvmlDeviceGetInforomVersion, version)
HED_NVML_REFUSE(nvmlDeviceGetInforomImageVersion, version)
HED_NVML_REFUSE(nvmlDeviceGetInforomConfigurationChecksum, checksum)
HED_NVML_REFUSE(nvmlDeviceGetBridgeChipInfo, bridgeHierarchy)
HED_NVML_REFUSE(nvmlDeviceGetGspFirmwareVersion, version)
HED_NVML_REFUSE(nvmlDeviceGetGspFirmwareMode, isEnabled)
HED_NVML_REFUSE(nvmlDeviceGetNumaNodeId, node)
HED_NVML_REFUSE(nvmlDeviceGetAttributes_v2, attributes)
HED_NVML_REFUSE(nvmlDeviceGetAttributes, attributes)

static nvmlReturn_t
soft_nvmlDeviceGetCudaComputeCapability(struct hed_layer *self,
                                        struct hed_nvmlDeviceGetCudaComputeCapability *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->major, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->major = d.profile->major;
    *a->minor = d.profile->minor;
    return NVML_SUCCESS;
}

/* ---- the bus --------------------------------------------------------------------------------- */

static void
fill_pci(const struct hed_nvml_device *d, nvmlPciInfo_t *out)
{
    const struct hed_profile_device *i = d->info;

    memset(out, 0, sizeof *out);
    out->domain = (unsigned)i->pci_domain;
    out->bus = (unsigned)i->pci_bus;
    out->device = (unsigned)i->pci_slot;
    out->pciDeviceId = d->profile->pci_device_id;
    out->pciSubSystemId = d->profile->pci_subsystem_id;
    (void)snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.0", out->domain, out->bus & 0xff,
                   out->device & 0xff);
    (void)snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0",
                   out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
}

/* The first versions of the struct are shorter: `size` ends before the long name, with four words
 * to spare. */
static nvmlReturn_t
pci_info(struct hed_layer *self, nvmlDevice_t device, nvmlPciInfo_t *out, size_t size)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, out, &d);
    nvmlPciInfo_t pci;

    if (r != NVML_SUCCESS)
        return r;
    fill_pci(&d, &pci);
    if (size < sizeof pci)
        memset(pci.busId, 0, sizeof pci.busId);
    memcpy(out, &pci, size);
    return NVML_SUCCESS;
}

#define OLD_PCI_SIZE (offsetof(nvmlPciInfo_t, busId) + 16)

static nvmlReturn_t
soft_nvmlDeviceGetPciInfo_v3(struct hed_layer *self, struct hed_nvmlDeviceGetPciInfo_v3 *a)
{
    return pci_info(self, a->device, a->pci, sizeof *a->pci);
}

static nvmlReturn_t
soft_nvmlDeviceGetPciInfo_v2(struct hed_layer *self, struct hed_nvmlDeviceGetPciInfo_v2 *a)
{
    return pci_info(self, a->device, a->pci, OLD_PCI_SIZE);
}

static nvmlReturn_t
soft_nvmlDeviceGetPciInfo(struct hed_layer *self, struct hed_nvmlDeviceGetPciInfo *a)
{
    return pci_info(self, a->device, a->pci, OLD_PCI_SIZE);
}

static nvmlReturn_t
soft_nvmlDeviceGetPciInfoExt(struct hed_layer *self, struct hed_nvmlDeviceGetPciInfoExt *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->pci, &d);
    nvmlPciInfo_t pci;

    if (r != NVML_SUCCESS)
        return r;
    if (a->pci->version != HED_NVML_VERSION(nvmlPciInfoExt_v1_t, 1u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fill_pci(&d, &pci);
    a->pci->domain = pci.domain;
    a->pci->bus = pci.bus;
    a->pci->device = pci.device;
    a->pci->pciDeviceId = pci.pciDeviceId;
    a->pci->pciSubSystemId = pci.pciSubSystemId;
    a->pci->baseClass = 3; /* display controller, 3D */
    a->pci->subClass = 2;
    memcpy(a->pci->busId, pci.busId, sizeof a->pci->busId);
    return NVML_SUCCESS;
}

/* MB/s of one lane, by generation. */
static unsigned
lane_speed(const struct hed_profile *p)
{
    const unsigned g = p->pcie_generation;

    return g >= 3 && g <= 6 ? 8000u << (g - 3) : g == 2 ? 5000 : 2500;
}

HED_NVML_ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, maxLinkGen, d.profile->pcie_generation)
HED_NVML_ANSWER(nvmlDeviceGetGpuMaxPcieLinkGeneration, maxLinkGenDevice, d.profile->pcie_generation)
HED_NVML_ANSWER(nvmlDeviceGetMaxPcieLinkWidth, maxLinkWidth, d.profile->pcie_width)
HED_NVML_ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, currLinkGen, d.profile->pcie_generation)
HED_NVML_ANSWER(nvmlDeviceGetCurrPcieLinkWidth, currLinkWidth, d.profile->pcie_width)
HED_NVML_ANSWER(nvmlDeviceGetPcieReplayCounter, value, 0)
HED_NVML_ANSWER(nvmlDeviceGetPcieLinkMaxSpeed, maxSpeed, d.profile->pcie_generation)
HED_NVML_ANSWER(nvmlDeviceGetPcieSpeed, pcieSpeed, lane_speed(d.profile))
HED_NVML_ANSWER(nvmlDeviceGetBusType, type, 2) /* PCI Express */
HED_NVML_REFUSE(nvmlDeviceGetIrqNum, irqNum)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkState, isActive)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkVersion, version)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkCapability, capResult)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkRemotePciInfo_v2, pci)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkRemotePciInfo, pci)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkErrorCounter, counterValue)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkRemoteDeviceType, pNvLinkDeviceType)
HED_NVML_REFUSE(nvmlDeviceGetNvLinkUtilizationCounter, rxcounter)
HED_NVML_REFUSE(nvmlDeviceGetGpuFabricInfo, gpuFabricInfo)
HED_NVML_REFUSE(nvmlDeviceGetGpuFabricInfoV, gpuFabricInfo)
HED_NVML_REFUSE(nvmlDeviceGetC2cModeInfoV, c2cModeInfo)

/* ---- modes ----------------------------------------------------------------------------------- */

static bool
has_ecc(const struct hed_profile *p)
{
    return hed_profile_has(p, CU_DEVICE_ATTRIBUTE_ECC_ENABLED) &&
           p->attributes[CU_DEVICE_ATTRIBUTE_ECC_ENABLED] != 0;
}

/* The devices that can be divided are the big ones of each generation. */
static bool
has_mig(const struct hed_profile *p)
{
    return p->minor == 0 && p->major >= 8 && p->major <= 10;
}

HED_NVML_ANSWER(nvmlDeviceGetDisplayMode, display, NVML_FEATURE_DISABLED)
HED_NVML_ANSWER(nvmlDeviceGetDisplayActive, isActive, NVML_FEATURE_DISABLED)
HED_NVML_ANSWER(nvmlDeviceGetPersistenceMode, mode, NVML_FEATURE_ENABLED)
HED_NVML_ANSWER(nvmlDeviceGetComputeMode, mode, NVML_COMPUTEMODE_DEFAULT)
HED_NVML_ANSWER(nvmlDeviceGetAccountingMode, mode, NVML_FEATURE_DISABLED)
HED_NVML_ANSWER(nvmlDeviceGetVirtualizationMode, pVirtualMode, NVML_GPU_VIRTUALIZATION_MODE_NONE)
HED_NVML_ANSWER(nvmlDeviceIsMigDeviceHandle, isMigDevice, 0)
HED_NVML_REFUSE(nvmlDeviceGetDriverModel_v2, current)
HED_NVML_REFUSE(nvmlDeviceGetDriverModel, current)
HED_NVML_REFUSE(nvmlDeviceGetGpuOperationMode, current)
HED_NVML_REFUSE(nvmlDeviceGetHostVgpuMode, pHostVgpuMode)
HED_NVML_REFUSE(nvmlDeviceGetGpuInstanceId, id)
HED_NVML_REFUSE(nvmlDeviceGetComputeInstanceId, id)

static nvmlReturn_t
soft_nvmlDeviceGetMigMode(struct hed_layer *self, struct hed_nvmlDeviceGetMigMode *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->currentMode, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->pendingMode)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_mig(d.profile))
        return NVML_ERROR_NOT_SUPPORTED;
    *a->currentMode = 0;
    *a->pendingMode = 0;
    return NVML_SUCCESS;
}

HED_NVML_ANSWER(nvmlDeviceGetMaxMigDeviceCount, count, 0)

static nvmlReturn_t
soft_nvmlDeviceGetMigDeviceHandleByIndex(struct hed_layer *self,
                                         struct hed_nvmlDeviceGetMigDeviceHandleByIndex *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->migDevice, &d);

    return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

static nvmlReturn_t
soft_nvmlDeviceGetEccMode(struct hed_layer *self, struct hed_nvmlDeviceGetEccMode *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->current, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_ecc(d.profile))
        return NVML_ERROR_NOT_SUPPORTED;
    *a->current = NVML_FEATURE_ENABLED;
    *a->pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetDefaultEccMode(struct hed_layer *self, struct hed_nvmlDeviceGetDefaultEccMode *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->defaultMode, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!has_ecc(d.profile))
        return NVML_ERROR_NOT_SUPPORTED;
    *a->defaultMode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

/* There are never any errors. */
static nvmlReturn_t
no_errors(struct hed_layer *self, nvmlDevice_t device, unsigned long long *out)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, out, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!has_ecc(d.profile))
        return NVML_ERROR_NOT_SUPPORTED;
    *out = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetTotalEccErrors(struct hed_layer *self, struct hed_nvmlDeviceGetTotalEccErrors *a)
{
    if ((unsigned)a->errorType >= NVML_MEMORY_ERROR_TYPE_COUNT ||
        (unsigned)a->counterType >= NVML_ECC_COUNTER_TYPE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return no_errors(self, a->device, a->eccCounts);
}

static nvmlReturn_t
soft_nvmlDeviceGetMemoryErrorCounter(struct hed_layer *self,
                                     struct hed_nvmlDeviceGetMemoryErrorCounter *a)
{
    if ((unsigned)a->errorType >= NVML_MEMORY_ERROR_TYPE_COUNT ||
        (unsigned)a->counterType >= NVML_ECC_COUNTER_TYPE_COUNT ||
        (unsigned)a->locationType >= NVML_MEMORY_LOCATION_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return no_errors(self, a->device, a->count);
}

HED_NVML_REFUSE(nvmlDeviceGetRetiredPages, pageCount)
HED_NVML_REFUSE(nvmlDeviceGetRetiredPages_v2, pageCount)
HED_NVML_REFUSE(nvmlDeviceGetRetiredPagesPendingStatus, isPending)

static nvmlReturn_t
soft_nvmlDeviceGetRemappedRows(struct hed_layer *self, struct hed_nvmlDeviceGetRemappedRows *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->corrRows, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->uncRows || !a->isPending || !a->failureOccurred)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_ecc(d.profile) || d.profile->major < 8)
        return NVML_ERROR_NOT_SUPPORTED;
    *a->corrRows = 0;
    *a->uncRows = 0;
    *a->isPending = 0;
    *a->failureOccurred = 0;
    return NVML_SUCCESS;
}

/* ---- the CPUs near it: those this process may use -------------------------------------------- */

static nvmlReturn_t
near_cpus(struct hed_layer *self, nvmlDevice_t device, unsigned size, unsigned long *set)
{
    const unsigned bits = 8 * sizeof *set;
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, set, &d);
    cpu_set_t cpus;

    if (r != NVML_SUCCESS)
        return r;
    if (size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return NVML_ERROR_OPERATING_SYSTEM;
    memset(set, 0, (size_t)size * sizeof *set);
    for (unsigned i = 0; i < CPU_SETSIZE && i / bits < size; i++)
        if (CPU_ISSET(i, &cpus))
            set[i / bits] |= 1ul << i % bits;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetCpuAffinity(struct hed_layer *self, struct hed_nvmlDeviceGetCpuAffinity *a)
{
    return near_cpus(self, a->device, a->cpuSetSize, a->cpuSet);
}

static nvmlReturn_t
soft_nvmlDeviceGetCpuAffinityWithinScope(struct hed_layer *self,
                                         struct hed_nvmlDeviceGetCpuAffinityWithinScope *a)
{
    return a->scope > 1 ? NVML_ERROR_INVALID_ARGUMENT
                        : near_cpus(self, a->device, a->cpuSetSize, a->cpuSet);
}

static nvmlReturn_t
soft_nvmlDeviceGetMemoryAffinity(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryAffinity *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->nodeSet, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->nodeSetSize == 0 || a->scope > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(a->nodeSet, 0, (size_t)a->nodeSetSize * sizeof *a->nodeSet);
    a->nodeSet[0] = 1;
    return NVML_SUCCESS;
}

#define ENTRY(call) .call = soft_##call

const struct hed_nvml_ops hed_calls_nvml_device = {
    ENTRY(nvmlDeviceGetName),
    ENTRY(nvmlDeviceGetUUID),
    ENTRY(nvmlDeviceGetVbiosVersion),
    ENTRY(nvmlDeviceGetBrand),
    ENTRY(nvmlDeviceGetArchitecture),
    ENTRY(nvmlDeviceGetNumGpuCores),
    ENTRY(nvmlDeviceGetIndex),
    ENTRY(nvmlDeviceGetMinorNumber),
    ENTRY(nvmlDeviceGetModuleId),
    ENTRY(nvmlDeviceGetBoardId),
    ENTRY(nvmlDeviceGetMultiGpuBoard),
    ENTRY(nvmlDeviceGetSerial),
    ENTRY(nvmlDeviceGetBoardPartNumber),
    ENTRY(nvmlDeviceGetInforomVersion),
    ENTRY(nvmlDeviceGetInforomImageVersion),
    ENTRY(nvmlDeviceGetInforomConfigurationChecksum),
    ENTRY(nvmlDeviceGetBridgeChipInfo),
    ENTRY(nvmlDeviceGetGspFirmwareVersion),
    ENTRY(nvmlDeviceGetGspFirmwareMode),
    ENTRY(nvmlDeviceGetNumaNodeId),
    ENTRY(nvmlDeviceGetAttributes_v2),
    ENTRY(nvmlDeviceGetAttributes),
    ENTRY(nvmlDeviceGetCudaComputeCapability),
    ENTRY(nvmlDeviceGetPciInfo_v3),
    ENTRY(nvmlDeviceGetPciInfo_v2),
    ENTRY(nvmlDeviceGetPciInfo),
    ENTRY(nvmlDeviceGetPciInfoExt),
    ENTRY(nvmlDeviceGetMaxPcieLinkGeneration),
    ENTRY(nvmlDeviceGetGpuMaxPcieLinkGeneration),
    ENTRY(nvmlDeviceGetMaxPcieLinkWidth),
    ENTRY(nvmlDeviceGetCurrPcieLinkGeneration),
    ENTRY(nvmlDeviceGetCurrPcieLinkWidth),
    ENTRY(nvmlDeviceGetPcieReplayCounter),
    ENTRY(nvmlDeviceGetPcieLinkMaxSpeed),
    ENTRY(nvmlDeviceGetPcieSpeed),
    ENTRY(nvmlDeviceGetBusType),
    ENTRY(nvmlDeviceGetIrqNum),
    ENTRY(nvmlDeviceGetNvLinkState),
    ENTRY(nvmlDeviceGetNvLinkVersion),
    ENTRY(nvmlDeviceGetNvLinkCapability),
    ENTRY(nvmlDeviceGetNvLinkRemotePciInfo_v2),
    ENTRY(nvmlDeviceGetNvLinkRemotePciInfo),
    ENTRY(nvmlDeviceGetNvLinkErrorCounter),
    ENTRY(nvmlDeviceGetNvLinkRemoteDeviceType),
    ENTRY(nvmlDeviceGetNvLinkUtilizationCounter),
    ENTRY(nvmlDeviceGetGpuFabricInfo),
    ENTRY(nvmlDeviceGetGpuFabricInfoV),
    ENTRY(nvmlDeviceGetC2cModeInfoV),
    ENTRY(nvmlDeviceGetDisplayMode),
    ENTRY(nvmlDeviceGetDisplayActive),
    ENTRY(nvmlDeviceGetPersistenceMode),
    ENTRY(nvmlDeviceGetComputeMode),
    ENTRY(nvmlDeviceGetAccountingMode),
    ENTRY(nvmlDeviceGetVirtualizationMode),
    ENTRY(nvmlDeviceIsMigDeviceHandle),
    ENTRY(nvmlDeviceGetDriverModel_v2),
    ENTRY(nvmlDeviceGetDriverModel),
    ENTRY(nvmlDeviceGetGpuOperationMode),
    ENTRY(nvmlDeviceGetHostVgpuMode),
    ENTRY(nvmlDeviceGetGpuInstanceId),
    ENTRY(nvmlDeviceGetComputeInstanceId),
    ENTRY(nvmlDeviceGetMigMode),
    ENTRY(nvmlDeviceGetMaxMigDeviceCount),
    ENTRY(nvmlDeviceGetMigDeviceHandleByIndex),
    ENTRY(nvmlDeviceGetEccMode),
    ENTRY(nvmlDeviceGetDefaultEccMode),
    ENTRY(nvmlDeviceGetTotalEccErrors),
    ENTRY(nvmlDeviceGetMemoryErrorCounter),
    ENTRY(nvmlDeviceGetRetiredPages),
    ENTRY(nvmlDeviceGetRetiredPages_v2),
    ENTRY(nvmlDeviceGetRetiredPagesPendingStatus),
    ENTRY(nvmlDeviceGetRemappedRows),
    ENTRY(nvmlDeviceGetCpuAffinity),
    ENTRY(nvmlDeviceGetCpuAffinityWithinScope),
    ENTRY(nvmlDeviceGetMemoryAffinity),
};
