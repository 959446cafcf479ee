"""NVML through ctypes, as monitors use it."""

import ctypes

n = ctypes.CDLL("libnvidia-ml.so.1")
n.nvmlErrorString.restype = ctypes.c_char_p
device, count, name = ctypes.c_void_p(), ctypes.c_uint(), ctypes.create_string_buffer(96)


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]


memory = Memory()
print(n.nvmlInit_v2(), n.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
print(n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
print(n.nvmlDeviceGetName(device, name, 96), name.value)
print(n.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)), memory.total)
print(n.nvmlDeviceGetHandleByIndex_v2(1000, ctypes.byref(device)), n.nvmlErrorString(2))
print(n.nvmlShutdown())
