"""NVML 13.0. The files are executed in this order, in one name space (gen/vocabulary.py)."""

FILES = ["system", "device_types", "usage_types", "device", "control", "mig", "vgpu", "numbers",
         "local", "areas"]
