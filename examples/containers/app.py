"""A CUDA program: writes a pattern into the GPU's memory and reads it back, through the driver API."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
data = ctypes.create_string_buffer(4096)


def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        raise SystemExit(f"{name} failed with {result}")


call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(4096))
call("cuMemsetD8_v2", at, 0x5a, ctypes.c_size_t(4096))
call("cuMemcpyDtoH_v2", data, at, ctypes.c_size_t(4096))
assert data.raw == b"\x5a" * 4096
print("4096 bytes made the way to the server's GPU and back")
