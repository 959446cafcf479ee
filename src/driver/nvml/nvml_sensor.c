/* NVML: how a device is doing. Clocks, power, temperature, fans and how busy it is. A CPU has no
 * such values; they are derived from the profile and from the share of time during which kernels
 * ran. */
#include <string.h>

#include "base/clock.h"
#include "driver/nvml/nvml.h"

#define SAMPLE_US 1000000u /* the time over which load is measured */
#define REASONS_KNOWN 0x1ffull

unsigned
hed_nvml_power_least(const struct hed_profile *p)
{
    return p->power_limit / 2 > p->power_idle ? p->power_limit / 2 : p->power_idle;
}

unsigned
hed_nvml_power(const struct hed_nvml_device *d)
{
    const struct hed_profile *p = d->profile;
    const uint64_t range = p->power_limit > p->power_idle ? p->power_limit - p->power_idle : 0;

    return p->power_idle + (unsigned)(range * hed_shared_load(d->driver, d->index) * 9 / 1000);
}

unsigned
hed_nvml_temperature(const struct hed_nvml_device *d)
{
    const struct hed_profile *p = d->profile;
    const uint64_t most = p->temperature_slowdown > 15 ? p->temperature_slowdown - 15 : 0;
    const uint64_t range = most > p->temperature_idle ? most - p->temperature_idle : 0;

    return p->temperature_idle + (unsigned)(range * hed_shared_load(d->driver, d->index) / 100);
}

/* mW * ns / 1e9 is mJ/1e3. Idle power since the computer started, plus more while it worked. */
uint64_t
hed_nvml_energy(const struct hed_nvml_device *d)
{
    const struct hed_profile *p = d->profile;
    const uint64_t range = p->power_limit > p->power_idle ? p->power_limit - p->power_idle : 0;
    const uint64_t up_ms = hed_clock_ns(CLOCK_BOOTTIME) / 1000000;
    const uint64_t worked_ms = hed_shared_worked(d->driver, d->index) / 1000000;

    return p->power_idle * up_ms / 1000 + range * worked_ms / 1000;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* MHz; false if there is no such clock. */
static bool
clock_of(const struct hed_profile *p, nvmlClockType_t type, unsigned *mhz)
{
    const uint32_t clocks[] = {p->clock_graphics, p->clock_sm, p->clock_memory, p->clock_video};

    if ((unsigned)type >= sizeof clocks / sizeof *clocks)
        return false;
    *mhz = clocks[type];
    return true;
}

static nvmlReturn_t
get_clock(struct hed_layer *self, nvmlDevice_t device, nvmlClockType_t type, unsigned *out)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, out, &d);

    if (r != NVML_SUCCESS)
        return r;
    return clock_of(d.profile, type, out) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t
soft_nvmlDeviceGetClockInfo(struct hed_layer *self, struct hed_nvmlDeviceGetClockInfo *a)
{
    return get_clock(self, a->device, a->type, a->clock);
}

static nvmlReturn_t
soft_nvmlDeviceGetMaxClockInfo(struct hed_layer *self, struct hed_nvmlDeviceGetMaxClockInfo *a)
{
    return get_clock(self, a->device, a->type, a->clock);
}

static nvmlReturn_t
soft_nvmlDeviceGetClock(struct hed_layer *self, struct hed_nvmlDeviceGetClock *a)
{
    if ((unsigned)a->clockId >= NVML_CLOCK_ID_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return get_clock(self, a->device, a->clockType, a->clockMHz);
}

/* The video clock follows the others and has no setting of its own. */
static nvmlReturn_t
application_clock(struct hed_layer *self, nvmlDevice_t device, nvmlClockType_t type, unsigned *out)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, out, &d);

    if (r != NVML_SUCCESS)
        return r;
    return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : get_clock(self, device, type, out);
}

static nvmlReturn_t
soft_nvmlDeviceGetApplicationsClock(struct hed_layer *self,
                                    struct hed_nvmlDeviceGetApplicationsClock *a)
{
    return application_clock(self, a->device, a->clockType, a->clockMHz);
}

static nvmlReturn_t
soft_nvmlDeviceGetDefaultApplicationsClock(struct hed_layer *self,
                                           struct hed_nvmlDeviceGetDefaultApplicationsClock *a)
{
    return application_clock(self, a->device, a->clockType, a->clockMHz);
}

static nvmlReturn_t
soft_nvmlDeviceGetMaxCustomerBoostClock(struct hed_layer *self,
                                        struct hed_nvmlDeviceGetMaxCustomerBoostClock *a)
{
    return application_clock(self, a->device, a->clockType, a->clockMHz);
}

/* A list with one clock. */
static nvmlReturn_t
put_clock(unsigned *count, unsigned *clocks, unsigned mhz)
{
    const unsigned room = *count;

    *count = 1;
    if (!clocks || room == 0)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    clocks[0] = mhz;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetSupportedMemoryClocks(struct hed_layer *self,
                                        struct hed_nvmlDeviceGetSupportedMemoryClocks *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->count, &d);

    return r == NVML_SUCCESS ? put_clock(a->count, a->clocksMHz, d.profile->clock_memory) : r;
}

static nvmlReturn_t
soft_nvmlDeviceGetSupportedGraphicsClocks(struct hed_layer *self,
                                          struct hed_nvmlDeviceGetSupportedGraphicsClocks *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->count, &d);

    if (r != NVML_SUCCESS)
        return r;
    return a->memoryClockMHz == d.profile->clock_memory
               ? put_clock(a->count, a->clocksMHz, d.profile->clock_graphics)
               : NVML_ERROR_NOT_FOUND;
}

static unsigned long long
clock_reasons(const struct hed_nvml_device *d)
{
    return hed_shared_load(d->driver, d->index) ? 0 : nvmlClocksEventReasonGpuIdle;
}

HED_NVML_ANSWER(nvmlDeviceGetCurrentClocksEventReasons, clocksEventReasons, clock_reasons(&d))
HED_NVML_ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, clocksThrottleReasons, clock_reasons(&d))
HED_NVML_ANSWER(nvmlDeviceGetSupportedClocksEventReasons, supportedClocksEventReasons,
                REASONS_KNOWN)
HED_NVML_ANSWER(nvmlDeviceGetSupportedClocksThrottleReasons, supportedClocksThrottleReasons,
                REASONS_KNOWN)
HED_NVML_ANSWER(nvmlDeviceGetPerformanceState, pState, NVML_PSTATE_0)
HED_NVML_ANSWER(nvmlDeviceGetPowerState, pState, NVML_PSTATE_0)
HED_NVML_ANSWER(nvmlDeviceGetGpcClkVfOffset, offset, 0)
HED_NVML_ANSWER(nvmlDeviceGetMemClkVfOffset, offset, 0)
HED_NVML_ANSWER(nvmlDeviceGetAdaptiveClockInfoStatus, adaptiveClockStatus, 1)
HED_NVML_REFUSE(nvmlDeviceGetAutoBoostedClocksEnabled, isEnabled)

/* ---- power ----------------------------------------------------------------------------------- */

HED_NVML_ANSWER(nvmlDeviceGetPowerManagementMode, mode, NVML_FEATURE_ENABLED)
HED_NVML_ANSWER(nvmlDeviceGetPowerManagementLimit, limit, d.profile->power_limit)
HED_NVML_ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, defaultLimit, d.profile->power_limit)
HED_NVML_ANSWER(nvmlDeviceGetEnforcedPowerLimit, limit, d.profile->power_limit)
HED_NVML_ANSWER(nvmlDeviceGetPowerUsage, power, hed_nvml_power(&d))
HED_NVML_ANSWER(nvmlDeviceGetPowerSource, powerSource, 0)
HED_NVML_ANSWER(nvmlDeviceGetTotalEnergyConsumption, energy, hed_nvml_energy(&d))

static nvmlReturn_t
soft_nvmlDeviceGetPowerManagementLimitConstraints(
    struct hed_layer *self, struct hed_nvmlDeviceGetPowerManagementLimitConstraints *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->minLimit, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->maxLimit)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->minLimit = hed_nvml_power_least(d.profile);
    *a->maxLimit = d.profile->power_limit;
    return NVML_SUCCESS;
}

/* ---- temperature and fans -------------------------------------------------------------------- */

static nvmlReturn_t
soft_nvmlDeviceGetTemperature(struct hed_layer *self, struct hed_nvmlDeviceGetTemperature *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->temp, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->temp = hed_nvml_temperature(&d);
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetTemperatureV(struct hed_layer *self, struct hed_nvmlDeviceGetTemperatureV *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->temperature, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->temperature->version != HED_NVML_VERSION(nvmlTemperature_v1_t, 1u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (a->temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    a->temperature->temperature = (int)hed_nvml_temperature(&d);
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetTemperatureThreshold(struct hed_layer *self,
                                       struct hed_nvmlDeviceGetTemperatureThreshold *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->temp, &d);

    if (r != NVML_SUCCESS)
        return r;
    switch (a->thresholdType) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
        *a->temp = d.profile->temperature_shutdown;
        return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
        *a->temp = d.profile->temperature_slowdown;
        return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
        *a->temp = d.profile->temperature_slowdown - (d.profile->temperature_slowdown > 2 ? 2 : 0);
        return NVML_SUCCESS;
    default:
        return (unsigned)a->thresholdType < NVML_TEMPERATURE_THRESHOLD_COUNT
                   ? NVML_ERROR_NOT_SUPPORTED
                   : NVML_ERROR_INVALID_ARGUMENT;
    }
}

HED_NVML_ANSWER(nvmlDeviceGetNumFans, numFans, d.profile->fans)

static nvmlReturn_t
fan_speed(struct hed_layer *self, nvmlDevice_t device, unsigned fan, unsigned *out)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, out, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (d.profile->fans == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (fan >= d.profile->fans)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* Per cent. Fans stand still while the device is idle. */
    *out = hed_shared_load(d.driver, d.index) * 7 / 10;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetFanSpeed(struct hed_layer *self, struct hed_nvmlDeviceGetFanSpeed *a)
{
    return fan_speed(self, a->device, 0, a->speed);
}

static nvmlReturn_t
soft_nvmlDeviceGetFanSpeed_v2(struct hed_layer *self, struct hed_nvmlDeviceGetFanSpeed_v2 *a)
{
    return fan_speed(self, a->device, a->fan, a->speed);
}

static nvmlReturn_t
soft_nvmlDeviceGetTargetFanSpeed(struct hed_layer *self, struct hed_nvmlDeviceGetTargetFanSpeed *a)
{
    return fan_speed(self, a->device, a->fan, a->targetSpeed);
}

/* ---- load ------------------------------------------------------------------------------------ */

static nvmlReturn_t
soft_nvmlDeviceGetUtilizationRates(struct hed_layer *self,
                                   struct hed_nvmlDeviceGetUtilizationRates *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->utilization, &d);

    if (r != NVML_SUCCESS)
        return r;
    a->utilization->gpu = hed_shared_load(d.driver, d.index);
    /* How much of the time memory was accessed is not known; it is never more than the time of
     * work. */
    a->utilization->memory = a->utilization->gpu / 2;
    return NVML_SUCCESS;
}

/* Nothing encodes or decodes here. */
static nvmlReturn_t
no_use(struct hed_layer *self, nvmlDevice_t device, unsigned *use, unsigned *period)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, device, use, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!period)
        return NVML_ERROR_INVALID_ARGUMENT;
    *use = 0;
    *period = SAMPLE_US;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetEncoderUtilization(struct hed_layer *self,
                                     struct hed_nvmlDeviceGetEncoderUtilization *a)
{
    return no_use(self, a->device, a->utilization, a->samplingPeriodUs);
}

static nvmlReturn_t
soft_nvmlDeviceGetDecoderUtilization(struct hed_layer *self,
                                     struct hed_nvmlDeviceGetDecoderUtilization *a)
{
    return no_use(self, a->device, a->utilization, a->samplingPeriodUs);
}

static nvmlReturn_t
soft_nvmlDeviceGetJpgUtilization(struct hed_layer *self, struct hed_nvmlDeviceGetJpgUtilization *a)
{
    return no_use(self, a->device, a->utilization, a->samplingPeriodUs);
}

static nvmlReturn_t
soft_nvmlDeviceGetOfaUtilization(struct hed_layer *self, struct hed_nvmlDeviceGetOfaUtilization *a)
{
    return no_use(self, a->device, a->utilization, a->samplingPeriodUs);
}

HED_NVML_ANSWER(nvmlDeviceGetEncoderSessions, sessionCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetFBCSessions, sessionCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetFBCStats, fbcStats, (nvmlFBCStats_t){0})

static nvmlReturn_t
soft_nvmlDeviceGetEncoderStats(struct hed_layer *self, struct hed_nvmlDeviceGetEncoderStats *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->sessionCount, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (!a->averageFps || !a->averageLatency)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->sessionCount = 0;
    *a->averageFps = 0;
    *a->averageLatency = 0;
    return NVML_SUCCESS;
}

/* KB/s over the bus, of which there is none. */
HED_NVML_ANSWER(nvmlDeviceGetPcieThroughput, value, 0)

#define ENTRY(call) .call = soft_##call

const struct hed_nvml_ops hed_calls_nvml_sensor = {
    ENTRY(nvmlDeviceGetClockInfo),
    ENTRY(nvmlDeviceGetMaxClockInfo),
    ENTRY(nvmlDeviceGetClock),
    ENTRY(nvmlDeviceGetApplicationsClock),
    ENTRY(nvmlDeviceGetDefaultApplicationsClock),
    ENTRY(nvmlDeviceGetMaxCustomerBoostClock),
    ENTRY(nvmlDeviceGetSupportedMemoryClocks),
    ENTRY(nvmlDeviceGetSupportedGraphicsClocks),
    ENTRY(nvmlDeviceGetCurrentClocksEventReasons),
    ENTRY(nvmlDeviceGetCurrentClocksThrottleReasons),
    ENTRY(nvmlDeviceGetSupportedClocksEventReasons),
    ENTRY(nvmlDeviceGetSupportedClocksThrottleReasons),
    ENTRY(nvmlDeviceGetPerformanceState),
    ENTRY(nvmlDeviceGetPowerState),
    ENTRY(nvmlDeviceGetGpcClkVfOffset),
    ENTRY(nvmlDeviceGetMemClkVfOffset),
    ENTRY(nvmlDeviceGetAdaptiveClockInfoStatus),
    ENTRY(nvmlDeviceGetAutoBoostedClocksEnabled),
    ENTRY(nvmlDeviceGetPowerManagementMode),
    ENTRY(nvmlDeviceGetPowerManagementLimit),
    ENTRY(nvmlDeviceGetPowerManagementDefaultLimit),
    ENTRY(nvmlDeviceGetEnforcedPowerLimit),
    ENTRY(nvmlDeviceGetPowerUsage),
    ENTRY(nvmlDeviceGetPowerSource),
    ENTRY(nvmlDeviceGetTotalEnergyConsumption),
    ENTRY(nvmlDeviceGetPowerManagementLimitConstraints),
    ENTRY(nvmlDeviceGetTemperature),
    ENTRY(nvmlDeviceGetTemperatureV),
    ENTRY(nvmlDeviceGetTemperatureThreshold),
    ENTRY(nvmlDeviceGetNumFans),
    ENTRY(nvmlDeviceGetFanSpeed),
    ENTRY(nvmlDeviceGetFanSpeed_v2),
    ENTRY(nvmlDeviceGetTargetFanSpeed),
    ENTRY(nvmlDeviceGetUtilizationRates),
    ENTRY(nvmlDeviceGetEncoderUtilization),
    ENTRY(nvmlDeviceGetDecoderUtilization),
    ENTRY(nvmlDeviceGetJpgUtilization),
    ENTRY(nvmlDeviceGetOfaUtilization),
    ENTRY(nvmlDeviceGetEncoderSessions),
    ENTRY(nvmlDeviceGetFBCSessions),
    ENTRY(nvmlDeviceGetFBCStats),
    ENTRY(nvmlDeviceGetEncoderStats),
    ENTRY(nvmlDeviceGetPcieThroughput),
};
