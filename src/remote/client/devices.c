/* The server's devices: what they are, and which of the program's devices each becomes. See
 * remote.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "remote/client/remote.h"

/* Removes what a device can do with memory and processes of its own computer, but not with ours. */
static void
forget_attributes(int *attributes)
{
    static const CUdevice_attribute none[] = {
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
    };

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        attributes[none[i]] = 0;
}

static void
to_profile(const struct hed_wire_device *d, struct hed_profile_device *out)
{
    struct hed_profile *p = &out->profile;

    memset(out, 0, sizeof *out);
    (void)snprintf(p->name, sizeof p->name, "%.*s", (int)sizeof d->name, d->name);
    (void)snprintf(p->short_name, sizeof p->short_name, "%.*s", (int)sizeof d->short_name,
                   d->short_name);
    (void)snprintf(p->brand, sizeof p->brand, "%.*s", (int)sizeof d->brand, d->brand);
    (void)snprintf(p->architecture, sizeof p->architecture, "%.*s", (int)sizeof d->architecture,
                   d->architecture);
    (void)snprintf(p->vbios, sizeof p->vbios, "%.*s", (int)sizeof d->vbios, d->vbios);
    p->major = d->major;
    p->minor = d->minor;
    p->memory = d->memory;
    memcpy(p->attributes, d->attributes, sizeof p->attributes);
    forget_attributes(p->attributes);
    memcpy(p->has_attribute, d->has_attribute, sizeof p->has_attribute);
    p->accepts_newer_ptx = d->accepts_newer_ptx;
    p->pci_device_id = d->pci_device_id;
    p->pci_subsystem_id = d->pci_subsystem_id;
    p->clock_graphics = d->clock_graphics;
    p->clock_sm = d->clock_sm;
    p->clock_memory = d->clock_memory;
    p->clock_video = d->clock_video;
    p->power_limit = d->power_limit;
    p->power_idle = d->power_idle;
    p->temperature_idle = d->temperature_idle;
    p->temperature_slowdown = d->temperature_slowdown;
    p->temperature_shutdown = d->temperature_shutdown;
    p->pcie_generation = d->pcie_generation;
    p->pcie_width = d->pcie_width;
    p->fans = d->fans;
    memcpy(out->uuid, d->uuid, sizeof out->uuid);
    out->pci_domain = d->pci_domain;
    out->pci_bus = d->pci_bus;
    out->pci_slot = d->pci_slot;
    out->index = (uint32_t)d->index;
}

_Static_assert(HED_WIRE_ATTRIBUTES == HED_PROFILE_ATTRIBUTES, "a device's attributes travel whole");

int
hed_remote_take_devices(struct hed_remote *r, struct hed_channel *channel, uint32_t count,
                        bool *real, struct hed_profile_device *out)
{
    for (uint32_t i = 0; i < count; i++) {
        struct hed_msg *m;
        const int err = hed_channel_next(channel, r->timeout_ms, &m);

        if (err)
            return err;

        const struct hed_wire_device *d = (const struct hed_wire_device *)m;

        if (m->kind != HED_MSG_ANSWER || m->size != sizeof *d || d->index != (int32_t)i)
            return HED_EFORMAT;
        to_profile(d, &out[i]);
        real[i] = d->real;
    }
    return 0;
}

/* A device of the program becomes the server's number k. */
static void
become_device(struct hed_remote_device *d, uint32_t k, const struct hed_profile *profile, bool real)
{
    d->ordinal = (int)k;
    d->real = real;
    d->major = profile->major;
    d->minor = profile->minor;
    d->accepts_newer_ptx = profile->accepts_newer_ptx;
}

size_t
hed_remote_choose_visible(struct hed_remote *r, struct hed_profile_device *devices, size_t count,
                          const bool *real)
{
    const size_t left = hed_profile_visible(devices, count, getenv("CUDA_VISIBLE_DEVICES"));

    for (size_t i = 0; i < left; i++)
        become_device(&r->devices[i], devices[i].index, &devices[i].profile,
                      real[devices[i].index]);
    return left;
}

int
hed_remote_choose_again(struct hed_remote *r, const struct hed_profile_device *devices,
                        uint32_t there, const bool *real, struct hed_why *why)
{
    uint64_t taken[(HED_PROFILE_DEVICES_MAX + 63) / 64] = {0};

    if (there < (uint32_t)r->device_count) {
        hed_why_set(why, "the program sees %d devices, and the server has %u", r->device_count,
                    there);
        return HED_ENOTSUP;
    }
    for (int i = 0; i < r->device_count; i++) {
        struct hed_remote_device *d = &r->devices[i];
        uint32_t k = (uint32_t)d->ordinal;

        if (k >= there || taken[k / 64] >> k % 64 & 1)
            for (k = 0; taken[k / 64] >> k % 64 & 1;)
                k++;
        taken[k / 64] |= UINT64_C(1) << k % 64;
        become_device(d, k, &devices[k].profile, real[k]);
    }
    return 0;
}
