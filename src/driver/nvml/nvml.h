/* What the files that answer NVML have in common. Profiles say what a device is, driver/shared.h
 * how much of it is used; NVML only asks, it changes nothing.
 *
 * What a real device of that kind refuses (the fans of a passively cooled one) is refused quietly,
 * HED_NVML_REFUSE; what the soft driver cannot do is in no table, so it is counted and named.
 */
#pragma once

#include "driver/driver.h"
#include "driver/profile.h"
#include "driver/shared.h"
#include "gen/nvml_calls.h"

struct hed_nvml_device {
    struct hed_driver *driver;
    const struct hed_profile_device *info;
    const struct hed_profile *profile; /* info's */
    size_t index;                      /* among all devices */
};

/* UNINITIALIZED before nvmlInit. */
nvmlReturn_t hed_nvml_ready(struct hed_layer *self);

/* The device of a handle. UNINITIALIZED; INVALID_ARGUMENT: it is none, or `out` is NULL. */
nvmlReturn_t hed_nvml_find(struct hed_layer *self, nvmlDevice_t handle, const void *out,
                           struct hed_nvml_device *d);

nvmlDevice_t hed_nvml_handle(const struct hed_profile_device *info);

/* The serial number, which follows from the UUID; false: such devices have none. */
#define HED_NVML_SERIAL 32
bool hed_nvml_serial(const struct hed_profile_device *info, char out[HED_NVML_SERIAL]);

/* Puts text: INVALID_ARGUMENT for NULL, INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t hed_nvml_text(char *out, unsigned length, const char *text);

/* Is that the version number that a program puts into a struct of that type? */
#define HED_NVML_VERSION(type, n) ((unsigned)sizeof(type) | (n) << 24)

/* A call that puts one value. `d` is the device, `a` the arguments. */
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

/* A call that no device of this kind takes. */
#define HED_NVML_REFUSE(call, field)                                              \
    static nvmlReturn_t soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                             \
        struct hed_nvml_device d;                                                 \
        const nvmlReturn_t r = hed_nvml_find(self, a->device, a->field, &d);      \
                                                                                  \
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;                  \
    }

/* What follows from how busy it is: nvml_sensor.c. */
unsigned hed_nvml_power(const struct hed_nvml_device *d);       /* mW */
unsigned hed_nvml_temperature(const struct hed_nvml_device *d); /* Celsius */
uint64_t hed_nvml_energy(const struct hed_nvml_device *d);      /* mJ */
unsigned hed_nvml_power_least(const struct hed_profile *p);     /* mW */
