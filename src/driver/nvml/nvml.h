/* What the files that answer NVML have in common. The profile says what a device is, and
 * driver/shared.h how much of it is used. NVML only asks; it changes nothing.
 *
 * Calls that a real device of this kind refuses (the fans of a passively cooled one) are refused
 * without a log line: HED_NVML_REFUSE. Calls that the soft driver cannot answer are in no table, so
 * they are counted and logged by name.
 */
#pragma once

#include "driver/parts.h"
#include "driver/profile.h"
#include "driver/shared.h"
#include "gen/nvml_calls.h"

struct hed_nvml_device {
    struct hed_driver *driver;
    const struct hed_profile_device *info;
    const struct hed_profile *profile; /* that of `info` */
    size_t index;                      /* in the list of all devices */
};

/* UNINITIALIZED before nvmlInit. */
nvmlReturn_t hed_nvml_ready(struct hed_layer *self);

/* The device of a handle. UNINITIALIZED; INVALID_ARGUMENT: there is no such device, or `out` is
 * NULL. */
nvmlReturn_t hed_nvml_find(struct hed_layer *self, nvmlDevice_t handle, const void *out,
                           struct hed_nvml_device *d);

nvmlDevice_t hed_nvml_handle(const struct hed_profile_device *info);

/* The serial number, which is derived from the UUID. False if such devices have none. */
#define HED_NVML_SERIAL 32
bool hed_nvml_serial(const struct hed_profile_device *info, char out[HED_NVML_SERIAL]);

/* Copies text to `out`: INVALID_ARGUMENT for NULL, INSUFFICIENT_SIZE if it does not fit. */
nvmlReturn_t hed_nvml_text(char *out, unsigned length, const char *text);

/* The version number that a program puts into a struct of this type. */
#define HED_NVML_VERSION(type, n) ((unsigned)sizeof(type) | (n) << 24)

/* A call that answers with one value. `d` is the device, `a` the arguments. */
#define HED_NVML_ANSWER(call, field, value)                                       \
    static nvmlReturn_t soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                             \
        struct hed_nvml_device d;                                                 \
        const nvmlReturn_t r = hed_nvml_find(self, a->device, a->field, &d);      \
                                                                                  \
        if (r == NVML_SUCCESS)                                                    \
            *a->field = (value);                                                  \
        return r;                                                                 \
    }

/* A call that no device of this kind supports. */
#define HED_NVML_REFUSE(call, field)                                              \
    static nvmlReturn_t soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                             \
        struct hed_nvml_device d;                                                 \
        const nvmlReturn_t r = hed_nvml_find(self, a->device, a->field, &d);      \
                                                                                  \
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;                  \
    }

/* Values that depend on how busy the device is: nvml_sensor.c. */
unsigned hed_nvml_power(const struct hed_nvml_device *d);       /* mW */
unsigned hed_nvml_temperature(const struct hed_nvml_device *d); /* Celsius */
uint64_t hed_nvml_energy(const struct hed_nvml_device *d);      /* mJ */
unsigned hed_nvml_power_least(const struct hed_profile *p);     /* mW */
