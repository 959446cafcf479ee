/* Loads libcuda.so.1 and finds its functions: see driver.h. */
#include "cudart/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "gen/cudart_abi.h"

static struct {
    pthread_once_t once;
    void *library;   /* NULL: there is none */
    CUresult result; /* of cuInit() */
} driver = {.once = PTHREAD_ONCE_INIT};

static void
load_driver(void)
{
    CUresult (*init)(unsigned int) = NULL;

    /* Our own path says where heddle's libcuda is, in case that nothing else does. */
    driver.library = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver.library)
        init = (CUresult(*)(unsigned int))dlsym(driver.library, "cuInit");
    driver.result = init ? init(0) : (CUresult)cudaErrorInsufficientDriver;
    if (!init)
        hed_warn(CUDART, "libcuda.so.1 was not loaded: %s", dlerror());
}

CUresult
hed_rt_start(void)
{
    (void)pthread_once(&driver.once, load_driver);
    return driver.result;
}

void *
hed_rt_bind(const char *name, CUresult *why)
{
    void *f;

    *why = hed_rt_start();
    if (*why != CUDA_SUCCESS && (!driver.library || strcmp(name, "cuDriverGetVersion") != 0))
        return NULL;
    f = dlsym(driver.library, name);
    if (!f) {
        *why = (CUresult)cudaErrorCallRequiresNewerDriver;
        hed_warn(CUDART, "the driver has no %s", name);
    }
    return f;
}
