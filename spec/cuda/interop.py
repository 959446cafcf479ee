"""Graphics interop: OpenGL, EGL, VDPAU. NVIDIA declares these in headers of their own, which need
the graphics libraries' headers; names and objects of those libraries are plain numbers and pointers
here.
"""

handle("CUeglStreamConnection", "eglStream", "struct CUeglStreamConnection_st")

enum("CUGLDeviceList",
     CU_GL_DEVICE_LIST_ALL=0x01, CU_GL_DEVICE_LIST_CURRENT_FRAME=0x02,
     CU_GL_DEVICE_LIST_NEXT_FRAME=0x03)

# Types of frames and colour formats are enums of cudaEGL.h.
struct("CUeglFrame",
       F(inner("union",
               F(CUarray, "pArray", 3),
               F(PTR, "pPitch", 3),
               cases={0: "pArray", 1: "pPitch"}), "frame", tag="frameType"),
       F(U32, "width"),
       F(U32, "height"),
       F(U32, "depth"),
       F(U32, "pitch"),
       F(U32, "planeCount"),
       F(U32, "numChannels"),
       F(I32, "frameType"),
       F(I32, "eglColorFormat"),
       F(CUarray_format, "cuFormat"))

GL, EGL, VDPAU = "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"

call("cuGraphicsGLRegisterBuffer", Out(CUgraphicsResource, "pCudaResource", new="graphicsResource"),
     In(U32, "buffer"), In(U32, "Flags"), since=3000, header=GL, does="make")
call("cuGraphicsGLRegisterImage", Out(CUgraphicsResource, "pCudaResource", new="graphicsResource"),
     In(U32, "image"), In(U32, "target"), In(U32, "Flags"), since=3000, header=GL, does="make")
call("cuGLGetDevices", Out(U32, "pCudaDeviceCount"),
     Out(Array(CUdevice, "cudaDeviceCount"), "pCudaDevices"), In(U32, "cudaDeviceCount"),
     In(CUGLDeviceList, "deviceList"), since=4010, after="none", header=GL)
call("cuGLGetDevices_v2", Out(U32, "pCudaDeviceCount"),
     Out(Array(CUdevice, "cudaDeviceCount"), "pCudaDevices"), In(U32, "cudaDeviceCount"),
     In(CUGLDeviceList, "deviceList"), since=6050, after="none", header=GL)
call("cuGLInit", since=2000, header=GL, does="set")
call("cuGLCtxCreate", Out(CUcontext, "pCtx", new="context"), In(U32, "Flags"),
     In(CUdevice, "device"), since=2000, header=GL, does="begin_context", about="device")
call("cuGLCtxCreate_v2", Out(CUcontext, "pCtx", new="context"), In(U32, "Flags"),
     In(CUdevice, "device"), since=3020, header=GL, does="begin_context", about="device")
call("cuGLRegisterBufferObject", In(U32, "buffer"), since=2000, header=GL, does="set")
call("cuGLUnregisterBufferObject", In(U32, "buffer"), since=2000, header=GL, does="set")
call("cuGLSetBufferObjectMapFlags", In(U32, "buffer"), In(U32, "Flags"), since=2030, header=GL,
     does="set")
call("cuGLMapBufferObject", Out(CUdeviceptr_v1, "dptr"), Out(U32, "size"), In(U32, "buffer"),
     since=2000, blocks=True, header=GL, does="set")
call("cuGLMapBufferObject_v2", Out(CUdeviceptr, "dptr"), Out(SIZE, "size"), In(U32, "buffer"),
     since=3020, ptds=7000, blocks=True, header=GL, does="set")
call("cuGLUnmapBufferObject", In(U32, "buffer"), since=2000, header=GL, does="set")
call("cuGLMapBufferObjectAsync", Out(CUdeviceptr_v1, "dptr"), Out(U32, "size"), In(U32, "buffer"),
     In(CUstream, "hStream"), since=2030, header=GL, does="order")
call("cuGLMapBufferObjectAsync_v2", Out(CUdeviceptr, "dptr"), Out(SIZE, "size"), In(U32, "buffer"),
     In(CUstream, "hStream"), since=3020, ptds=7000, header=GL, does="order")
call("cuGLUnmapBufferObjectAsync", In(U32, "buffer"), In(CUstream, "hStream"), since=2030,
     header=GL, does="order")

call("cuGraphicsEGLRegisterImage", Out(CUgraphicsResource, "pCudaResource", new="graphicsResource"),
     In(PTR, "image"), In(U32, "flags"), since=7000, header=EGL, does="make")
call("cuEGLStreamConsumerConnect", Out(CUeglStreamConnection, "conn", new="eglStream"),
     In(PTR, "stream"), since=7000, header=EGL, does="make")
call("cuEGLStreamConsumerConnectWithFlags", Out(CUeglStreamConnection, "conn", new="eglStream"),
     In(PTR, "stream"), In(U32, "flags"), since=8000, header=EGL, does="make")
call("cuEGLStreamConsumerDisconnect", InOut(CUeglStreamConnection, "conn", free="eglStream"),
     since=7000, header=EGL, does="end")
call("cuEGLStreamConsumerAcquireFrame", InOut(CUeglStreamConnection, "conn"),
     Out(CUgraphicsResource, "pCudaResource"), In(Ref(CUstream, mut=True), "pStream"),
     In(U32, "timeout"), since=7000, blocks=True, header=EGL, stream="*pStream", does="order")
call("cuEGLStreamConsumerReleaseFrame", InOut(CUeglStreamConnection, "conn"),
     In(CUgraphicsResource, "pCudaResource"), In(Ref(CUstream, mut=True), "pStream"), since=7000,
     header=EGL, stream="*pStream", does="order")
call("cuEGLStreamProducerConnect", Out(CUeglStreamConnection, "conn", new="eglStream"),
     In(PTR, "stream"), In(I32, "width"), In(I32, "height"), since=7000, header=EGL, does="make")
call("cuEGLStreamProducerDisconnect", InOut(CUeglStreamConnection, "conn", free="eglStream"),
     since=7000, header=EGL, does="end")
call("cuEGLStreamProducerPresentFrame", InOut(CUeglStreamConnection, "conn"),
     In(CUeglFrame, "eglframe"), In(Ref(CUstream, mut=True), "pStream"), since=7000, header=EGL,
     stream="*pStream", does="order")
call("cuGraphicsResourceGetMappedEglFrame", Out(CUeglFrame, "eglFrame"),
     In(CUgraphicsResource, "resource"), In(U32, "index"), In(U32, "mipLevel"), since=7000,
     header=EGL, does="ask")
call("cuEGLStreamProducerReturnFrame", InOut(CUeglStreamConnection, "conn"),
     Out(CUeglFrame, "eglframe"), In(Ref(CUstream, mut=True), "pStream"), since=7000, header=EGL,
     stream="*pStream", does="order")
call("cuEventCreateFromEGLSync", Out(CUevent, "phEvent", new="event"), In(PTR, "eglSync"),
     In(U32, "flags"), since=9000, header=EGL, does="make")

call("cuVDPAUGetDevice", Out(CUdevice, "pDevice"), In(U32, "vdpDevice"),
     In(PTR, "vdpGetProcAddress"), since=3010, after="none", header=VDPAU)
call("cuVDPAUCtxCreate", Out(CUcontext, "pCtx", new="context"), In(U32, "flags"),
     In(CUdevice, "device"), In(U32, "vdpDevice"), In(PTR, "vdpGetProcAddress"), since=3010,
     header=VDPAU, does="begin_context", about="device")
call("cuVDPAUCtxCreate_v2", Out(CUcontext, "pCtx", new="context"), In(U32, "flags"),
     In(CUdevice, "device"), In(U32, "vdpDevice"), In(PTR, "vdpGetProcAddress"), since=3020,
     header=VDPAU, does="begin_context", about="device")
call("cuGraphicsVDPAURegisterVideoSurface",
     Out(CUgraphicsResource, "pCudaResource", new="graphicsResource"), In(U32, "vdpSurface"),
     In(U32, "flags"), since=3010, header=VDPAU, does="make")
call("cuGraphicsVDPAURegisterOutputSurface",
     Out(CUgraphicsResource, "pCudaResource", new="graphicsResource"), In(U32, "vdpSurface"),
     In(U32, "flags"), since=3010, header=VDPAU, does="make")
