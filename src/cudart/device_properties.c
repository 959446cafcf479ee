/* cudaDeviceProp: see device.h. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/device.h"
#include "gen/cudart_calls.h"

#define NAME_BYTES 256

static const struct hed_rt_member members_11[] = {
    HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp_11)      /**/
    HED_RT_PROP_UNTIL_12(HED_RT_MEMBER, cudaDeviceProp_11) /**/
    HED_RT_PROP_10_TO_12(HED_RT_MEMBER, cudaDeviceProp_11) /**/
    HED_RT_PROP_SINCE_10(HED_RT_MEMBER, cudaDeviceProp_11) /**/
    HED_RT_PROP_SINCE_11(HED_RT_MEMBER, cudaDeviceProp_11) /**/
};

static const struct hed_rt_member members_12[] = {
    HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp_12)      /**/
    HED_RT_PROP_UNTIL_12(HED_RT_MEMBER, cudaDeviceProp_12) /**/
    HED_RT_PROP_10_TO_12(HED_RT_MEMBER, cudaDeviceProp_12) /**/
    HED_RT_PROP_SINCE_10(HED_RT_MEMBER, cudaDeviceProp_12) /**/
    HED_RT_PROP_SINCE_11(HED_RT_MEMBER, cudaDeviceProp_12) /**/
    HED_RT_PROP_SINCE_12(HED_RT_MEMBER, cudaDeviceProp_12) /**/
};

static const struct hed_rt_member members_13[] = {
    HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp)      /**/
    HED_RT_PROP_SINCE_10(HED_RT_MEMBER, cudaDeviceProp) /**/
    HED_RT_PROP_SINCE_11(HED_RT_MEMBER, cudaDeviceProp) /**/
    HED_RT_PROP_SINCE_12(HED_RT_MEMBER, cudaDeviceProp) /**/
    HED_RT_PROP_SINCE_13(HED_RT_MEMBER, cudaDeviceProp) /**/
};

static const struct hed_rt_layout layout_11 =
    HED_RT_LAYOUT(cudaDeviceProp_11, members_11, true, sizeof(cudaDeviceProp_11));
static const struct hed_rt_layout layout_12 =
    HED_RT_LAYOUT(cudaDeviceProp_12, members_12, true, offsetof(cudaDeviceProp_12, reserved));
static const struct hed_rt_layout layout_13 =
    HED_RT_LAYOUT(cudaDeviceProp, members_13, true, offsetof(cudaDeviceProp, reserved));

_Static_assert(sizeof(cudaDeviceProp_12) <= HED_RT_LAYOUT_MAX, "room for all layouts");
_Static_assert(sizeof(cudaDeviceProp) <= HED_RT_LAYOUT_MAX, "room for all layouts");
_Static_assert(offsetof(cudaDeviceProp_11, uuid) == offsetof(cudaDeviceProp, uuid), "ids");
_Static_assert(offsetof(cudaDeviceProp_12, luid) == offsetof(cudaDeviceProp, luid), "ids");

/* ---- filling --------------------------------------------------------------------------------- */

static void
put_property(char *at, size_t bytes, uint64_t value)
{
    const uint32_t small = (uint32_t)value;

    if (bytes == sizeof small)
        memcpy(at, &small, sizeof small);
    else
        memcpy(at, &value, sizeof value);
}

/* Negative numbers are written to members without a sign as they are. */
static uint64_t
get_property(const char *at, size_t bytes)
{
    uint32_t small;
    uint64_t value;

    if (bytes == sizeof small) {
        memcpy(&small, at, sizeof small);
        return small;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

/* What does not change while the process runs is asked for once: that is a hundred calls. */
struct description {
    const struct hed_rt_layout *layout;
    int device;
    struct description *next;
    _Alignas(8) char prop[];
};

static struct description *_Atomic descriptions; /* grows at its head; one of each pair or two */

static const struct description *
find_description(const struct hed_rt_layout *layout, int device)
{
    /* Acquire: pairs with the release in remember_description(). */
    const struct description *d = atomic_load_explicit(&descriptions, memory_order_acquire);

    while (d && (d->layout != layout || d->device != device))
        d = d->next;
    return d;
}

static void
remember_description(const struct hed_rt_layout *layout, int device, const char *prop)
{
    struct description *d = malloc(sizeof *d + layout->bytes);

    if (!d)
        return;
    d->layout = layout;
    d->device = device;
    d->next = atomic_load_explicit(&descriptions, memory_order_relaxed);
    memcpy(d->prop, prop, layout->bytes);
    while (!atomic_compare_exchange_weak_explicit(&descriptions, &d->next, d, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

static CUresult
ask_properties(const struct hed_rt_driver *cu, const struct hed_rt_layout *layout, char *p,
               int device)
{
    size_t total = 0;
    CUresult r = cu->cuDeviceGetName(p, NAME_BYTES, device);

    if (r == CUDA_SUCCESS)
        r = cu->cuDeviceTotalMem_v2(&total, device);
    if (r != CUDA_SUCCESS)
        return r;
    put_property(p + layout->memory, sizeof total, total);
    /* LUIDs stay 0: only Windows has them. */
    if (layout->ids)
        (void)cu->cuDeviceGetUuid_v2((CUuuid *)(p + offsetof(cudaDeviceProp, uuid)), device);
    for (size_t i = 0; i < layout->count; i++) {
        const struct hed_rt_member *m = &layout->members[i];
        int value = 0;

        /* A driver does not know attributes that are newer than itself. */
        if (cu->cuDeviceGetAttribute(&value, (CUdevice_attribute)m->attribute, device) ==
            CUDA_SUCCESS)
            put_property(p + m->offset, m->bytes, (uint64_t)(int64_t)value);
    }
    return CUDA_SUCCESS;
}

cudaError_t
hed_rt_describe(const struct hed_rt_driver *cu, const struct hed_rt_layout *layout, void *prop,
                int device)
{
    const struct description *known;
    _Alignas(8) char p[HED_RT_LAYOUT_MAX] = {0};
    int count = 0;
    CUresult r;

    if (!prop)
        return cudaErrorInvalidValue;
    r = (CUresult)hed_rt_count_devices(cu, &count);
    if (r == CUDA_SUCCESS && (device < 0 || device >= count))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    known = find_description(layout, device);
    if (known) {
        memcpy(prop, known->prop, layout->bytes);
        return cudaSuccess;
    }
    r = ask_properties(cu, layout, p, device);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    remember_description(layout, device, p);
    memcpy(prop, p, layout->bytes);
    return cudaSuccess;
}

void
hed_rt_know_properties(const struct hed_rt_driver *cu, int count)
{
    cudaDeviceProp unused;

    for (int i = 0; i < count; i++)
        (void)hed_rt_describe(cu, &layout_13, &unused, i);
}

/* How many of the members that are asked for (those that are not 0) a device has. */
static size_t
count_matches(const struct hed_rt_layout *layout, const char *asked, const char *has)
{
    size_t n = 0;
    const uint64_t memory = get_property(asked + layout->memory, sizeof(size_t));

    n += memory && get_property(has + layout->memory, sizeof(size_t)) >= memory;
    for (size_t i = 0; i < layout->count; i++) {
        const struct hed_rt_member *m = &layout->members[i];
        const uint64_t wanted = get_property(asked + m->offset, m->bytes);

        n += wanted && get_property(has + m->offset, m->bytes) >= wanted;
    }
    return n;
}

cudaError_t
hed_rt_choose(const struct hed_rt_driver *cu, const struct hed_rt_layout *layout, int *device,
              const void *prop)
{
    _Alignas(8) char p[HED_RT_LAYOUT_MAX];
    size_t best = 0;
    int count = 0;
    int found = 0;
    cudaError_t r;

    if (!device || !prop)
        return cudaErrorInvalidValue;
    r = hed_rt_count_devices(cu, &count);
    if (r != cudaSuccess)
        return r;
    if (!count)
        return cudaErrorNoDevice;
    for (int i = 0; i < count; i++) {
        const cudaError_t e = hed_rt_describe(cu, layout, p, i);
        size_t n;

        if (e != cudaSuccess)
            return e;
        n = count_matches(layout, prop, p);
        if (n > best) {
            best = n;
            found = i;
        }
    }
    *device = found;
    return cudaSuccess;
}

/* ---- calls ----------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGetDeviceProperties(const struct hed_rt_driver *cu, cudaDeviceProp *prop, int device)
{
    return hed_rt_describe(cu, &layout_13, prop, device);
}

cudaError_t
hed_rt_cudaGetDeviceProperties_v2(const struct hed_rt_driver *cu, cudaDeviceProp_12 *prop,
                                  int device)
{
    return hed_rt_describe(cu, &layout_12, prop, device);
}

cudaError_t
hed_rt_cudaGetDeviceProperties_11(const struct hed_rt_driver *cu, cudaDeviceProp_11 *prop,
                                  int device)
{
    return hed_rt_describe(cu, &layout_11, prop, device);
}

/* In CUDA 12 this name stands for the layout of 11; programs of 12 call cudaGetDeviceProperties_v2,
 * but do not say so. */
cudaError_t
hed_rt_cudaGetDeviceProperties_12(const struct hed_rt_driver *cu, cudaDeviceProp_12 *prop,
                                  int device)
{
    return hed_rt_describe(cu, &layout_11, prop, device);
}

cudaError_t
hed_rt_cudaChooseDevice(const struct hed_rt_driver *cu, int *device, const cudaDeviceProp *prop)
{
    return hed_rt_choose(cu, &layout_13, device, prop);
}

/* The layout of 11 is the beginning of the one of 12, which a program may have meant. */
cudaError_t
hed_rt_cudaChooseDevice_12(const struct hed_rt_driver *cu, int *device,
                           const cudaDeviceProp_12 *prop)
{
    return hed_rt_choose(cu, &layout_11, device, prop);
}

cudaError_t
hed_rt_cudaChooseDevice_11(const struct hed_rt_driver *cu, int *device,
                           const cudaDeviceProp_11 *prop)
{
    return hed_rt_choose(cu, &layout_11, device, prop);
}
