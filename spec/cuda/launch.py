"""Launches and occupancy."""

struct("CUDA_LAUNCH_PARAMS_v1",
       F(CUfunction, "function"),
       F(U32, "gridDimX"),
       F(U32, "gridDimY"),
       F(U32, "gridDimZ"),
       F(U32, "blockDimX"),
       F(U32, "blockDimY"),
       F(U32, "blockDimZ"),
       F(U32, "sharedMemBytes"),
       F(CUstream, "hStream"),
       F(Ptr("void **"), "kernelParams"))

func("CUoccupancyB2DSize", "size_t", "int")

struct("CUlaunchAttribute",
       F(CUlaunchAttributeID, "id"),
       F(CHAR, "pad", 4),
       F(CUlaunchAttributeValue, "value", tag="id"))

struct("CUlaunchConfig",
       F(U32, "gridDimX"),
       F(U32, "gridDimY"),
       F(U32, "gridDimZ"),
       F(U32, "blockDimX"),
       F(U32, "blockDimY"),
       F(U32, "blockDimZ"),
       F(U32, "sharedMemBytes"),
       F(CUstream, "hStream"),
       F(Array(CUlaunchAttribute, "numAttrs", mut=True), "attrs"),
       F(U32, "numAttrs"))

func("CUhostFn", "void", "void *")

call("cuLaunchCooperativeKernelMultiDevice",
     In(Array(CUDA_LAUNCH_PARAMS_v1, "numDevices", mut=True), "launchParamsList",
        by_hand="kernel parameters: their layout is the function's"), In(U32, "numDevices"),
     In(U32, "flags"), since=9000, does="launch")
call("cuParamSetSize", In(CUfunction, "hfunc"), In(U32, "numbytes"), since=2000, does="set")
call("cuParamSeti", In(CUfunction, "hfunc"), In(I32, "offset"), In(U32, "value"), since=2000,
     does="set")
call("cuParamSetf", In(CUfunction, "hfunc"), In(I32, "offset"), In(F32, "value"), since=2000,
     does="set")
call("cuParamSetv", In(CUfunction, "hfunc"), In(I32, "offset"),
     In(Bytes("numbytes", mut=True), "ptr"), In(U32, "numbytes"), since=2000, does="set")
call("cuLaunch", In(CUfunction, "f"), since=2000, does="launch", about="f", size="1")
call("cuLaunchGrid", In(CUfunction, "f"), In(I32, "grid_width"), In(I32, "grid_height"), since=2000,
     does="launch", about="f", size="grid_width * grid_height")
call("cuLaunchGridAsync", In(CUfunction, "f"), In(I32, "grid_width"), In(I32, "grid_height"),
     In(CUstream, "hStream"), since=2000, does="launch", about="f", size="grid_width * grid_height")
call("cuParamSetTexRef", In(CUfunction, "hfunc"), In(I32, "texunit"), In(CUtexref, "hTexRef"),
     since=2000, does="set")
call("cuOccupancyMaxActiveBlocksPerMultiprocessor", Out(I32, "numBlocks"), In(CUfunction, "func"),
     In(I32, "blockSize"), In(SIZE, "dynamicSMemSize"), since=6050, after="none")
call("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", Out(I32, "numBlocks"),
     In(CUfunction, "func"), In(I32, "blockSize"), In(SIZE, "dynamicSMemSize"), In(U32, "flags"),
     since=7000, after="none")
call("cuOccupancyMaxPotentialBlockSize", Out(I32, "minGridSize"), Out(I32, "blockSize"),
     In(CUfunction, "func"), In(CUoccupancyB2DSize, "blockSizeToDynamicSMemSize"),
     In(SIZE, "dynamicSMemSize"), In(I32, "blockSizeLimit"), since=6050, after="none")
call("cuOccupancyMaxPotentialBlockSizeWithFlags", Out(I32, "minGridSize"), Out(I32, "blockSize"),
     In(CUfunction, "func"), In(CUoccupancyB2DSize, "blockSizeToDynamicSMemSize"),
     In(SIZE, "dynamicSMemSize"), In(I32, "blockSizeLimit"), In(U32, "flags"), since=7000,
     after="none")
call("cuOccupancyAvailableDynamicSMemPerBlock", Out(SIZE, "dynamicSmemSize"),
     In(CUfunction, "func"), In(I32, "numBlocks"), In(I32, "blockSize"), since=10020, after="none")
call("cuOccupancyMaxPotentialClusterSize", Out(I32, "clusterSize"), In(CUfunction, "func"),
     In(Ref(CUlaunchConfig), "config", extent="0"), since=11070, after="none", travel=True,
     relay=Roles("clusters", "&config"))
call("cuOccupancyMaxActiveClusters", Out(I32, "numClusters"), In(CUfunction, "func"),
     In(Ref(CUlaunchConfig), "config", extent="0"), since=11070, after="none", travel=True,
     relay=Roles("clusters", "&config"))


def launch(place="", **more):
    """The roles of a launch whose grid is in the arguments, or in a struct among them."""
    dims = {f"{what}_{d.lower()}": f"{place}{what}Dim{d}" for what in ("grid", "block")
            for d in "XYZ"}
    return Roles("launch", kernel="f", shared=f"{place}sharedMemBytes", **dims, **more)


call("cuLaunchKernel", In(CUfunction, "f"), In(U32, "gridDimX"), In(U32, "gridDimY"),
     In(U32, "gridDimZ"), In(U32, "blockDimX"), In(U32, "blockDimY"), In(U32, "blockDimZ"),
     In(U32, "sharedMemBytes"), In(CUstream, "hStream"),
     In(Ptr("void **"), "kernelParams", by_hand="its layout is the function's"),
     In(Ptr("void **"), "extra", by_hand="its layout is the function's"), since=4000, ptds=7000,
     does="launch", about="f", size="gridDimX * gridDimY * gridDimZ",
     defer=launch(params="&kernelParams", extra="&extra"), grid=Roles("grid", width="&gridDimX"))
call("cuLaunchKernelEx", In(Ref(CUlaunchConfig), "config"), In(CUfunction, "f"),
     In(Ptr("void **"), "kernelParams", by_hand="its layout is the function's"),
     In(Ptr("void **"), "extra", by_hand="its layout is the function's"), since=11060, ptds=True,
     stream="config.hStream", does="launch", about="f",
     size="config.gridDimX * config.gridDimY * config.gridDimZ",
     defer=launch("config.", config="config", params="&kernelParams", extra="&extra"),
     grid=Roles("grid", config="&config"))
call("cuLaunchHostFunc", In(CUstream, "hStream"), In(CUhostFn, "fn"), In(PTR, "userData"),
     since=10000, ptds=True, does="order", defer=Roles("host_function", function="fn"))
call("cuLaunchCooperativeKernel", In(CUfunction, "f"), In(U32, "gridDimX"), In(U32, "gridDimY"),
     In(U32, "gridDimZ"), In(U32, "blockDimX"), In(U32, "blockDimY"), In(U32, "blockDimZ"),
     In(U32, "sharedMemBytes"), In(CUstream, "hStream"),
     In(Ptr("void **"), "kernelParams", by_hand="its layout is the function's"), since=9000,
     ptds=True, does="launch", about="f", size="gridDimX * gridDimY * gridDimZ",
     defer=launch(params="&kernelParams", whole=1), grid=Roles("grid", width="&gridDimX"))
