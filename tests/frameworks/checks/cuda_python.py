"""cuda-python: the driver's API and NVRTC, asked for PTX and for machine code."""

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void scale(float *x, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}
"""


def ok(answer):
    status, *rest = answer
    assert int(status) == 0, status
    return rest[0] if len(rest) == 1 else rest


def compile_source(wanted):
    """NVRTC's result for the current device, as "ptx" or "cubin"."""
    device = ok(driver.cuCtxGetDevice())
    major = ok(driver.cuDeviceGetAttribute(
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = ok(driver.cuDeviceGetAttribute(
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    kind = "compute" if wanted == "ptx" else "sm"
    program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b"scale.cu", 0, [], []))
    target = f"--gpu-architecture={kind}_{major}{minor}"
    ok(nvrtc.nvrtcCompileProgram(program, 1, [target.encode()]))
    size, get = ((nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if wanted == "ptx" else
                 (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN))
    image = b" " * ok(size(program))
    ok(get(program, image))
    return np.char.array(image)


def open_context():
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))


def scale_by(image):
    kernel = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(image.ctypes.data)),
                                           b"scale"))
    x = np.arange(100, dtype=np.float32)
    at = ok(driver.cuMemAlloc(x.nbytes))
    ok(driver.cuMemcpyHtoD(at, x.ctypes.data, x.nbytes))
    values = [np.array([int(at)], np.uint64), np.array([2.5], np.float32),
              np.array([100], np.int32)]
    params = np.array([v.ctypes.data for v in values], np.uint64)
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, 0, params.ctypes.data, 0))
    back = np.zeros_like(x)
    ok(driver.cuMemcpyDtoH(back.ctypes.data, at, x.nbytes))
    np.testing.assert_array_equal(back, x * np.float32(2.5))


def check_nvrtc_ptx():
    open_context()
    scale_by(compile_source("ptx"))


def check_nvrtc_cubin():
    open_context()
    scale_by(compile_source("cubin"))


def check_cuda_core():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    version = "".join(str(n) for n in device.compute_capability)
    program = Program(SOURCE.decode(), "c++", ProgramOptions(arch=f"sm_{version}"))
    kernel = program.compile("cubin").get_kernel("scale")
    buffer = device.allocate(400, stream=stream)
    x = np.arange(100, dtype=np.float32)
    stream.sync()
    ok(driver.cuMemcpyHtoD(int(buffer.handle), x.ctypes.data, x.nbytes))
    launch(stream, LaunchConfig(grid=1, block=128), kernel, buffer, np.float32(2), np.int32(100))
    stream.sync()
    back = np.zeros_like(x)
    ok(driver.cuMemcpyDtoH(back.ctypes.data, int(buffer.handle), x.nbytes))
    np.testing.assert_array_equal(back, x * 2)


def check_runtime():
    from cuda.bindings import runtime

    assert ok(runtime.cudaGetDeviceCount()) == 1
    return ok(runtime.cudaGetDeviceProperties(0)).name.decode()
