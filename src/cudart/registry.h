/* What programs register before main(): fat binaries, and the kernels and variables in them, each
 * known by the address of a stub or of a shadow variable of the host.
 *
 *   __cudaRegisterFatBinary --> module      remembered only: nothing is loaded
 *   __cudaRegisterFunction  --> symbol --.
 *   cudaLaunchKernel(stub)  --> find ----+--> first use: cuLibraryLoadData, cuLibraryGetKernel
 *
 * Finding a symbol takes no lock. Kernels (CUkernel) belong to no context, so one handle serves
 * all devices.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

struct hed_rt_module;

enum hed_rt_kind {
    HED_RT_KERNEL,
    HED_RT_VARIABLE,
    HED_RT_MANAGED_POINTER, /* of the host; programs do not know the variable by it */
    HED_RT_MANAGED,         /* the key is its own address: programs have no shadow of it */
    HED_RT_TEXTURE,
    HED_RT_SURFACE,
};

/* Constant once it is registered, except for `kernel`. */
struct hed_rt_symbol {
    const void *host; /* the address by which the program knows it */
    enum hed_rt_kind kind;
    struct hed_rt_module *module;
    const char *name;            /* in the fat binary; the program's memory */
    size_t size;                 /* variables: bytes */
    _Atomic CUkernel kernel;     /* NULL until it is first used */
    struct hed_rt_symbol *next;  /* of the same module */
    struct hed_rt_symbol *older; /* that was registered with the same address */
};

/* ---- by address ------------------------------------------------------------------------------ */

/* NULL: there is none. No lock is taken. */
struct hed_rt_symbol *hed_rt_find(const void *host);

/* The kernel of a stub, loaded if need be. Other addresses are passed on: they may be handles
 * (cudaKernel_t, cudaFunction_t); before CUDA 12, cudaErrorInvalidDeviceFunction. If the code lacks
 * it: cudaErrorSymbolNotFound, before CUDA 11 cudaErrorInvalidDeviceFunction. */
cudaError_t hed_rt_kernel(const struct hed_rt_driver *cu, const void *func, CUkernel *out);

/* Address and size of a variable in the current context. cudaErrorInvalidSymbol: not one. If the
 * code lacks it, since CUDA 13: cudaErrorSymbolNotFound. */
cudaError_t hed_rt_variable(const struct hed_rt_driver *cu, const void *symbol, CUdeviceptr *at,
                            size_t *size);

/* The library of a module, loaded if need be. If the device had no use for its code, it is told so
 * again, and not loaded again before a reset. */
cudaError_t hed_rt_library(const struct hed_rt_driver *cu, struct hed_rt_module *m, CUlibrary *out);

/* The stub of a kernel, or the kernel itself if it has none. */
const void *hed_rt_stub(CUkernel kernel);

/* ---- registration ---------------------------------------------------------------------------- */

/* NULL: out of memory. */
struct hed_rt_module *hed_rt_add_module(const void *wrapper);

/* What does not fit into memory is not found later. */
void hed_rt_add_symbol(struct hed_rt_module *m, enum hed_rt_kind kind, const void *host,
                       const char *name, size_t size);

/* Loads the module, and gives its managed variables their addresses, by which they are found from
 * then on. */
bool hed_rt_init_module(struct hed_rt_module *m);

/* The same for all modules with managed variables, if it was not done yet: programs need not ask
 * for it themselves. Called with a context. */
void hed_rt_init_modules(void);

void hed_rt_remove_module(struct hed_rt_module *m);
