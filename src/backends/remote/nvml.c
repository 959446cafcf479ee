/* NVML of the worker's devices: what changes there (memory, load, temperature) is asked of the
 * worker; what a device is, the soft driver knows. Of the processes that use it a program sees
 * itself: a server tells no client of the others. On the wire a device is called by the worker's
 * number of it plus one.
 */
#include "driver/nvml/nvml.h"

#include "backends/remote/remote.h"

static nvmlReturn_t
ask_worker(struct hed_layer *self, enum hed_nvml_call id, nvmlDevice_t *device, void *args)
{
    struct hed_remote *r = hed_driver_of(self)->machine_state;
    const nvmlDevice_t given = *device;
    struct hed_nvml_device d;
    nvmlReturn_t result = hed_nvml_find(self, given, args, &d);

    if (result != NVML_SUCCESS)
        return result;
    if (d.index >= (size_t)r->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)(uintptr_t)(r->devices[d.index].ordinal + 1);
    result = hed_remote_ask_nvml(r, id, args);
    *device = given;
    return result;
}

#define ASK(call)                                                                   \
    static nvmlReturn_t remote_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                               \
        return ask_worker(self, HED_##call, &a->device, a);                         \
    }

ASK(nvmlDeviceGetMemoryInfo)
ASK(nvmlDeviceGetMemoryInfo_v2)
ASK(nvmlDeviceGetBAR1MemoryInfo)
ASK(nvmlDeviceGetUtilizationRates)
ASK(nvmlDeviceGetEncoderUtilization)
ASK(nvmlDeviceGetDecoderUtilization)
ASK(nvmlDeviceGetJpgUtilization)
ASK(nvmlDeviceGetOfaUtilization)
ASK(nvmlDeviceGetTemperature)
ASK(nvmlDeviceGetTemperatureV)
ASK(nvmlDeviceGetPowerUsage)
ASK(nvmlDeviceGetTotalEnergyConsumption)
ASK(nvmlDeviceGetPowerState)
ASK(nvmlDeviceGetPerformanceState)
ASK(nvmlDeviceGetClockInfo)
ASK(nvmlDeviceGetClock)
ASK(nvmlDeviceGetFanSpeed)
ASK(nvmlDeviceGetFanSpeed_v2)
ASK(nvmlDeviceGetCurrentClocksThrottleReasons)
ASK(nvmlDeviceGetCurrentClocksEventReasons)
ASK(nvmlDeviceGetPcieThroughput)
ASK(nvmlDeviceGetPcieReplayCounter)
ASK(nvmlDeviceGetCurrPcieLinkGeneration)
ASK(nvmlDeviceGetCurrPcieLinkWidth)
ASK(nvmlDeviceGetEccMode)
ASK(nvmlDeviceGetMemoryErrorCounter)
ASK(nvmlDeviceGetTotalEccErrors)
ASK(nvmlDeviceGetRemappedRows)
ASK(nvmlDeviceGetEnforcedPowerLimit)
ASK(nvmlDeviceGetPowerManagementLimit)
ASK(nvmlDeviceGetPersistenceMode)
ASK(nvmlDeviceGetComputeMode)
ASK(nvmlDeviceGetFieldValues)
ASK(nvmlDeviceGetApplicationsClock)

#define ENTRY(call) .call = remote_##call

const struct hed_nvml_ops hed_remote_nvml = {
    ENTRY(nvmlDeviceGetMemoryInfo),
    ENTRY(nvmlDeviceGetMemoryInfo_v2),
    ENTRY(nvmlDeviceGetBAR1MemoryInfo),
    ENTRY(nvmlDeviceGetUtilizationRates),
    ENTRY(nvmlDeviceGetEncoderUtilization),
    ENTRY(nvmlDeviceGetDecoderUtilization),
    ENTRY(nvmlDeviceGetJpgUtilization),
    ENTRY(nvmlDeviceGetOfaUtilization),
    ENTRY(nvmlDeviceGetTemperature),
    ENTRY(nvmlDeviceGetTemperatureV),
    ENTRY(nvmlDeviceGetPowerUsage),
    ENTRY(nvmlDeviceGetTotalEnergyConsumption),
    ENTRY(nvmlDeviceGetPowerState),
    ENTRY(nvmlDeviceGetPerformanceState),
    ENTRY(nvmlDeviceGetClockInfo),
    ENTRY(nvmlDeviceGetClock),
    ENTRY(nvmlDeviceGetFanSpeed),
    ENTRY(nvmlDeviceGetFanSpeed_v2),
    ENTRY(nvmlDeviceGetCurrentClocksThrottleReasons),
    ENTRY(nvmlDeviceGetCurrentClocksEventReasons),
    ENTRY(nvmlDeviceGetPcieThroughput),
    ENTRY(nvmlDeviceGetPcieReplayCounter),
    ENTRY(nvmlDeviceGetCurrPcieLinkGeneration),
    ENTRY(nvmlDeviceGetCurrPcieLinkWidth),
    ENTRY(nvmlDeviceGetEccMode),
    ENTRY(nvmlDeviceGetMemoryErrorCounter),
    ENTRY(nvmlDeviceGetTotalEccErrors),
    ENTRY(nvmlDeviceGetRemappedRows),
    ENTRY(nvmlDeviceGetEnforcedPowerLimit),
    ENTRY(nvmlDeviceGetPowerManagementLimit),
    ENTRY(nvmlDeviceGetPersistenceMode),
    ENTRY(nvmlDeviceGetComputeMode),
    ENTRY(nvmlDeviceGetFieldValues),
    ENTRY(nvmlDeviceGetApplicationsClock),
};
