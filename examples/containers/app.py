"""A CUDA program: writes a pattern into the GPU's memory, lets a kernel change it, and reads it back, all through
the driver API."""

import ctypes
import struct

KERNEL = b"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry add_index(.param .u64 at)
{
    .reg .b32 %i, %v, %n, %b;
    .reg .b64 %p, %o;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %b, %n, %i;
    ld.param.u64 %p, [at];
    mul.wide.u32 %o, %i, 4;
    add.u64 %p, %p, %o;
    ld.global.u32 %v, [%p];
    add.u32 %v, %v, %i;
    st.global.u32 [%p], %v;
    ret;
}
"""

cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
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
call("cuModuleLoadData", ctypes.byref(module), KERNEL)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"add_index")
args = (ctypes.c_void_p * 1)(ctypes.addressof(at))
call("cuLaunchKernel", kernel, 4, 1, 1, 256, 1, 1, 0, None, args, None)
call("cuMemcpyDtoH_v2", data, at, ctypes.c_size_t(4096))
assert struct.unpack("1024I", data.raw) == tuple(0x5a5a5a5a + i for i in range(1024))
print("4096 bytes made the way to the server's GPU and back, and 1024 sums are right")
