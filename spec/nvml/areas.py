"""The topics of calls, for people: NVML is one area."""

area("nvml", "nvml*")
