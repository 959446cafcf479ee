"""What people would file a call under: NVML is one area."""

area("nvml", "nvml*")
