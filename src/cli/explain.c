/* Explains what went wrong with a driver, and what to do about it. See probe.h. */
#include "cli/probe.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "gen/cuda_abi.h"
#include "gen/cuda_names.h"
#include "gen/nvml_abi.h"
#include "gen/nvml_names.h"

struct hint {
    int result;
    const char *text;
};

static const struct hint cuda_hints[] = {
    {CUDA_ERROR_NO_DEVICE,
     "No GPU is visible. Check nvidia-smi and CUDA_VISIBLE_DEVICES; a container must be given "
     "the GPU (docker run --gpus all)."},
    {CUDA_ERROR_STUB_LIBRARY,
     "This is the CUDA toolkit's stub library, which is only for linking. Remove its folder from "
     "LD_LIBRARY_PATH, or set `driver` to the real libcuda.so.1."},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "The driver library and the kernel module have different versions, as after an update. "
     "Restart the machine, or reload the nvidia modules."},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
     "The CUDA compatibility package does not support this GPU. Remove its folder from "
     "LD_LIBRARY_PATH, or set `driver`."},
    {CUDA_ERROR_SYSTEM_NOT_READY,
     "A service that the GPUs need is not running. On machines with NVSwitch: systemctl start "
     "nvidia-fabricmanager."},
    {CUDA_ERROR_DEVICE_UNAVAILABLE,
     "Another process uses the GPU exclusively. Check nvidia-smi and the compute mode."},
    {CUDA_ERROR_OUT_OF_MEMORY,
     "There is not enough memory. nvidia-smi shows which processes use it."},
    {CUDA_ERROR_NOT_PERMITTED,
     "You are not allowed to use the device. Check the permissions of /dev/nvidia*."},
    {CUDA_ERROR_UNKNOWN,
     "Often /dev/nvidia-uvm is missing: run `nvidia-modprobe -u -c=0` as root. Otherwise check "
     "dmesg."},
    {CUDA_ERROR_OPERATING_SYSTEM,
     "The kernel refused something the driver asked for. Check dmesg and ulimit -v."},
};

static const struct hint nvml_hints[] = {
    {NVML_ERROR_DRIVER_NOT_LOADED, "The kernel module is not loaded. Run modprobe nvidia."},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH,
     "The library and the kernel module have different versions, as after an update. Restart the "
     "machine, or reload the nvidia modules."},
    {NVML_ERROR_NO_PERMISSION,
     "You are not allowed to use the device. Check the permissions of /dev/nvidia*."},
    {NVML_ERROR_LIBRARY_NOT_FOUND,
     "A part of NVIDIA's driver is missing. Install the driver again."},
    {NVML_ERROR_GPU_IS_LOST,
     "The GPU has disappeared from the bus. Check dmesg, and restart the machine."},
};

static bool
is_nvml(const struct hed_probe *p)
{
    return strncmp(p->step, "nvml", 4) == 0;
}

static const char *
find_hint(const struct hint *hints, size_t count, int result)
{
    for (size_t i = 0; i < count; i++) {
        if (hints[i].result == result)
            return hints[i].text;
    }
    return "";
}

const char *
hed_probe_result_name(const struct hed_probe *p)
{
    const struct hed_enum *e =
        is_nvml(p) ? hed_enums_find(hed_nvml_enums, hed_nvml_enum_count, "nvmlReturn_t")
                   : hed_enums_find(hed_cuda_enums, hed_cuda_enum_count, "CUresult");
    const struct hed_enum_value *v = e ? hed_enum_find(e, p->result) : NULL;

    return v ? v->name : NULL;
}

static void
explain_result(const struct hed_probe *p, char *text, size_t size, const char **hint)
{
    const char *name = hed_probe_result_name(p);

    snprintf(text, size, "%s: %s (%d)", p->step, name ? name : "unknown error", p->result);
    if (is_nvml(p))
        *hint = find_hint(nvml_hints, sizeof nvml_hints / sizeof nvml_hints[0], p->result);
    else
        *hint = find_hint(cuda_hints, sizeof cuda_hints / sizeof cuda_hints[0], p->result);
}

void
hed_probe_explain(const struct hed_probe *p, char *text, size_t size, const char **hint)
{
    *hint = "";
    switch (p->end) {
    case HED_CHILD_NO_START:
        snprintf(text, size, "cannot start a process in which to ask the driver");
        *hint = "There are too many processes or too little memory.";
        return;
    case HED_CHILD_TIMEOUT:
        snprintf(text, size, "%s did not return within %d s", p->step, HED_PROBE_SECONDS);
        *hint = "The driver hangs. Check dmesg for lines with NVRM or Xid.";
        return;
    case HED_CHILD_CRASHED:
        if (p->signal_number)
            snprintf(text, size, "%s crashed: %s", p->step, strsignal(p->signal_number));
        else
            snprintf(text, size, "%s ended the process", p->step);
        return;
    case HED_CHILD_DONE:
        break;
    }
    if (p->error[0])
        snprintf(text, size, "%s", p->error);
    else if (p->said[0])
        snprintf(text, size, "%s", p->said);
    else
        explain_result(p, text, size, hint);
}
