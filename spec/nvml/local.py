"""Calls that a server never makes for a client: whatever changes the machine or its devices."""

local("it changes the machine",
      "nvml*Set*", "nvml*Reset*", "nvml*Clear*", "nvmlDeviceFreeze*", "nvmlDeviceRemoveGpu*",
      "nvmlDeviceModifyDrainState", "nvmlDeviceDiscoverGpus", "nvmlDeviceValidateInforom",
      "nvmlDevicePowerSmoothing*", "nvmlDeviceReadWritePRM*", "nvmlDeviceCreateGpuInstance*",
      "nvmlGpuInstanceDestroy", "nvmlGpuInstanceCreate*", "nvmlComputeInstanceDestroy")
local("it waits for what happens to the machine",
      "nvml*EventSet*", "nvmlDeviceRegisterEvents", "nvmlSystemRegisterEvents")
local("it holds memory of this process", "nvmlGpm*")
local("it is of this process", "nvmlInit*", "nvmlShutdown")
local("it tells of other processes of the machine",
      "nvmlSystemGetProcessName", "nvmlDeviceGet*Running*", "nvmlDeviceGetProcess*",
      "nvml*GetAccounting*", "nvml*Sessions")
