"""Modules, libraries, linking, kernels and functions."""

handle("CUmodule", "module", "struct CUmod_st")

enum("CUjit_option",
     CU_JIT_MAX_REGISTERS=0, CU_JIT_THREADS_PER_BLOCK=1, CU_JIT_WALL_TIME=2,
     CU_JIT_INFO_LOG_BUFFER=3, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES=4, CU_JIT_ERROR_LOG_BUFFER=5,
     CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6, CU_JIT_OPTIMIZATION_LEVEL=7,
     CU_JIT_TARGET_FROM_CUCONTEXT=8, CU_JIT_TARGET=9, CU_JIT_FALLBACK_STRATEGY=10,
     CU_JIT_GENERATE_DEBUG_INFO=11, CU_JIT_LOG_VERBOSE=12, CU_JIT_GENERATE_LINE_INFO=13,
     CU_JIT_CACHE_MODE=14, CU_JIT_NEW_SM3X_OPT=15, CU_JIT_FAST_COMPILE=16,
     CU_JIT_GLOBAL_SYMBOL_NAMES=17, CU_JIT_GLOBAL_SYMBOL_ADDRESSES=18,
     CU_JIT_GLOBAL_SYMBOL_COUNT=19, CU_JIT_LTO=20, CU_JIT_FTZ=21, CU_JIT_PREC_DIV=22,
     CU_JIT_PREC_SQRT=23, CU_JIT_FMA=24, CU_JIT_REFERENCED_KERNEL_NAMES=25,
     CU_JIT_REFERENCED_KERNEL_COUNT=26, CU_JIT_REFERENCED_VARIABLE_NAMES=27,
     CU_JIT_REFERENCED_VARIABLE_COUNT=28, CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES=29,
     CU_JIT_POSITION_INDEPENDENT_CODE=30, CU_JIT_MIN_CTA_PER_SM=31,
     CU_JIT_MAX_THREADS_PER_BLOCK=32, CU_JIT_OVERRIDE_DIRECTIVE_VALUES=33,
     CU_JIT_SPLIT_COMPILE=34, CU_JIT_NUM_OPTIONS=35)

enum("CUmoduleLoadingMode",
     CU_MODULE_EAGER_LOADING=0x1, CU_MODULE_LAZY_LOADING=0x2)

handle("CUfunction", "function", "struct CUfunc_st")

alias("CUdeviceptr_v1", U32, "x32")

alias("CUdeviceptr_v2", U64, "x64")

alias("CUdeviceptr", CUdeviceptr_v2, "x64")

handle("CUlinkState", "linkState")

enum("CUjitInputType",
     CU_JIT_INPUT_CUBIN=0, CU_JIT_INPUT_PTX=1, CU_JIT_INPUT_FATBINARY=2,
     CU_JIT_INPUT_OBJECT=3, CU_JIT_INPUT_LIBRARY=4, CU_JIT_INPUT_NVVM=5,
     CU_JIT_NUM_INPUT_TYPES=6)

handle("CUtexref", "texref")

handle("CUsurfref", "surfref")

handle("CUlibrary", "library", "struct CUlib_st")

enum("CUlibraryOption",
     CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE=0, CU_LIBRARY_BINARY_IS_PRESERVED=1,
     CU_LIBRARY_NUM_OPTIONS=2)

handle("CUkernel", "kernel", "struct CUkern_st")

enum("CUfunction_attribute",
     CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK=0, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=1,
     CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES=2, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES=3,
     CU_FUNC_ATTRIBUTE_NUM_REGS=4, CU_FUNC_ATTRIBUTE_PTX_VERSION=5,
     CU_FUNC_ATTRIBUTE_BINARY_VERSION=6, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA=7,
     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT=9,
     CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET=10,
     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH=11,
     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT=12,
     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH=13,
     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14,
     CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE=15, CU_FUNC_ATTRIBUTE_MAX=16)

enum("CUfunctionLoadingState",
     CU_FUNCTION_LOADING_STATE_UNLOADED=0, CU_FUNCTION_LOADING_STATE_LOADED=1,
     CU_FUNCTION_LOADING_STATE_MAX=2)

call("cuModuleLoad", Out(CUmodule, "module", new="module"), In(STR, "fname"), since=2000,
     does="make", memory=Roles("code_load", out="*module"))
call("cuModuleLoadData", Out(CUmodule, "module", new="module"),
     In(CPTR, "image", by_hand="the image says its own size"), since=2000, does="make",
     memory=Roles("code_load", out="*module"))
call("cuModuleLoadDataEx", Out(CUmodule, "module", new="module"),
     In(CPTR, "image", by_hand="the image says its own size"), In(U32, "numOptions"),
     In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"), since=2010, does="make",
     memory=Roles("code_load", out="*module"))
call("cuModuleLoadFatBinary", Out(CUmodule, "module", new="module"),
     In(CPTR, "fatCubin", by_hand="the image says its own size"), since=2000, does="make",
     memory=Roles("code_load", out="*module"))
call("cuModuleUnload", In(CUmodule, "hmod", free="module"), since=2000, blocks=True, does="end",
     memory=Roles("free", key="hmod"))
call("cuModuleGetLoadingMode", Out(CUmoduleLoadingMode, "mode"), since=11070, after="none")
call("cuModuleGetFunction", Out(CUfunction, "hfunc"), In(CUmodule, "hmod"), In(STR, "name"),
     since=2000, after="none")
call("cuModuleGetFunctionCount", Out(U32, "count"), In(CUmodule, "mod"), since=12040, after="none")
call("cuModuleEnumerateFunctions", Out(Array(CUfunction, "numFunctions"), "functions"),
     In(U32, "numFunctions"), In(CUmodule, "mod"), since=12040, after="none")
call("cuModuleGetGlobal", Out(CUdeviceptr_v1, "dptr", opt=True), Out(U32, "bytes", opt=True),
     In(CUmodule, "hmod"), In(STR, "name"), since=2000, after="none")
call("cuModuleGetGlobal_v2", Out(CUdeviceptr, "dptr", opt=True), Out(SIZE, "bytes", opt=True),
     In(CUmodule, "hmod"), In(STR, "name"), since=3020, after="none")
call("cuLinkCreate", In(U32, "numOptions"),
     In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"),
     Out(CUlinkState, "stateOut", new="linkState"), since=5050, does="make")
call("cuLinkCreate_v2", In(U32, "numOptions"),
     In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"),
     Out(CUlinkState, "stateOut", new="linkState"), since=6050, does="make")
call("cuLinkAddData", In(CUlinkState, "state"), In(CUjitInputType, "type"),
     In(Bytes("size", mut=True), "data"), In(SIZE, "size"), In(STR, "name"), In(U32, "numOptions"),
     In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"), since=5050, does="set")
call("cuLinkAddData_v2", In(CUlinkState, "state"), In(CUjitInputType, "type"),
     In(Bytes("size", mut=True), "data"), In(SIZE, "size"), In(STR, "name"), In(U32, "numOptions"),
     In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"), since=6050, does="set")
call("cuLinkAddFile", In(CUlinkState, "state"), In(CUjitInputType, "type"), In(STR, "path"),
     In(U32, "numOptions"), In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"), since=5050, does="set")
call("cuLinkAddFile_v2", In(CUlinkState, "state"), In(CUjitInputType, "type"), In(STR, "path"),
     In(U32, "numOptions"), In(Array(CUjit_option, "numOptions", mut=True), "options"),
     In(Array(PTR, "numOptions", mut=True), "optionValues"), since=6050, does="set")
call("cuLinkComplete", In(CUlinkState, "state"), Out(PTR, "cubinOut"), Out(SIZE, "sizeOut"),
     since=5050, does="set")
call("cuLinkDestroy", In(CUlinkState, "state", free="linkState"), since=5050, does="end")
call("cuModuleGetTexRef", Out(CUtexref, "pTexRef"), In(CUmodule, "hmod"), In(STR, "name"),
     since=2000, after="none")
call("cuModuleGetSurfRef", Out(CUsurfref, "pSurfRef"), In(CUmodule, "hmod"), In(STR, "name"),
     since=3000, after="none")
call("cuLibraryLoadData", Out(CUlibrary, "library", new="library"),
     In(CPTR, "code", by_hand="the image says its own size"),
     In(Array(CUjit_option, "numJitOptions", mut=True), "jitOptions"),
     In(Array(PTR, "numJitOptions", mut=True), "jitOptionsValues"), In(U32, "numJitOptions"),
     In(Array(CUlibraryOption, "numLibraryOptions", mut=True), "libraryOptions"),
     In(Array(PTR, "numLibraryOptions", mut=True), "libraryOptionValues"),
     In(U32, "numLibraryOptions"), since=12000, does="make",
     memory=Roles("code_load", out="*library"))
call("cuLibraryLoadFromFile", Out(CUlibrary, "library", new="library"), In(STR, "fileName"),
     In(Array(CUjit_option, "numJitOptions", mut=True), "jitOptions"),
     In(Array(PTR, "numJitOptions", mut=True), "jitOptionsValues"), In(U32, "numJitOptions"),
     In(Array(CUlibraryOption, "numLibraryOptions", mut=True), "libraryOptions"),
     In(Array(PTR, "numLibraryOptions", mut=True), "libraryOptionValues"),
     In(U32, "numLibraryOptions"), since=12000, does="make",
     memory=Roles("code_load", out="*library"))
call("cuLibraryUnload", In(CUlibrary, "library", free="library"), since=12000, blocks=True,
     does="end", memory=Roles("library_unload", key="library"))
call("cuLibraryGetKernel", Out(CUkernel, "pKernel"), In(CUlibrary, "library"), In(STR, "name"),
     since=12000, after="none")
call("cuLibraryGetKernelCount", Out(U32, "count"), In(CUlibrary, "lib"), since=12040, after="none")
call("cuLibraryEnumerateKernels", Out(Array(CUkernel, "numKernels"), "kernels"),
     In(U32, "numKernels"), In(CUlibrary, "lib"), since=12040, after="none")
call("cuLibraryGetModule", Out(CUmodule, "pMod"), In(CUlibrary, "library"), since=12000,
     after="none", memory=Roles("library_use", key="library"))
call("cuKernelGetFunction", Out(CUfunction, "pFunc"), In(CUkernel, "kernel"), since=12000,
     after="none")
call("cuKernelGetLibrary", Out(CUlibrary, "pLib"), In(CUkernel, "kernel"), since=12050,
     after="none")
call("cuLibraryGetGlobal", Out(CUdeviceptr, "dptr", opt=True), Out(SIZE, "bytes", opt=True),
     In(CUlibrary, "library"), In(STR, "name"), since=12000, after="none",
     memory=Roles("library_use", key="library"))
call("cuLibraryGetManaged", Out(CUdeviceptr, "dptr", opt=True), Out(SIZE, "bytes", opt=True),
     In(CUlibrary, "library"), In(STR, "name"), since=12000, after="none",
     memory=Roles("library_use", key="library"))
call("cuLibraryGetUnifiedFunction", Out(PTR, "fptr"), In(CUlibrary, "library"), In(STR, "symbol"),
     since=12000, after="none")
call("cuKernelGetAttribute", Out(I32, "pi"), In(CUfunction_attribute, "attrib"),
     In(CUkernel, "kernel"), In(CUdevice, "dev"), since=12000, after="none")
call("cuKernelSetAttribute", In(CUfunction_attribute, "attrib"), In(I32, "val"),
     In(CUkernel, "kernel"), In(CUdevice, "dev"), since=12000, does="set")
call("cuKernelSetCacheConfig", In(CUkernel, "kernel"), In(CUfunc_cache, "config"),
     In(CUdevice, "dev"), since=12000, does="set")
call("cuKernelGetName", Out(STR, "name"), In(CUkernel, "hfunc"), since=12030, after="none")
call("cuKernelGetParamInfo", In(CUkernel, "kernel"), In(SIZE, "paramIndex"),
     Out(SIZE, "paramOffset"), Out(SIZE, "paramSize", opt=True), since=12040, after="none")
call("cuFuncGetAttribute", Out(I32, "pi"), In(CUfunction_attribute, "attrib"),
     In(CUfunction, "hfunc"), since=2020, after="none")
call("cuFuncSetAttribute", In(CUfunction, "hfunc"), In(CUfunction_attribute, "attrib"),
     In(I32, "value"), since=9000, does="set", travel=True)
call("cuFuncSetCacheConfig", In(CUfunction, "hfunc"), In(CUfunc_cache, "config"), since=3000,
     does="set", travel=True, relay=Roles("plain"))
call("cuFuncGetModule", Out(CUmodule, "hmod"), In(CUfunction, "hfunc"), since=11000, after="none")
call("cuFuncGetName", Out(STR, "name"), In(CUfunction, "hfunc"), since=12030, after="none")
call("cuFuncGetParamInfo", In(CUfunction, "func"), In(SIZE, "paramIndex"), Out(SIZE, "paramOffset"),
     Out(SIZE, "paramSize", opt=True), since=12040, after="none")
call("cuFuncIsLoaded", Out(CUfunctionLoadingState, "state"), In(CUfunction, "function"),
     since=12040, after="none")
call("cuFuncLoad", In(CUfunction, "function"), since=12040, does="set", travel=True)
call("cuFuncSetBlockShape", In(CUfunction, "hfunc"), In(I32, "x"), In(I32, "y"), In(I32, "z"),
     since=2000, does="set")
call("cuFuncSetSharedSize", In(CUfunction, "hfunc"), In(U32, "bytes"), since=2000, does="set")
call("cuFuncSetSharedMemConfig", In(CUfunction, "hfunc"), In(CUsharedconfig, "config"), since=4020,
     does="set", travel=True, relay=Roles("plain"))
