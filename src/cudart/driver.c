/* Loads libcuda.so.1 and finds its functions: see driver.h. */
#include "cudart/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gen/cudart_abi.h"

static struct {
    pthread_once_t once;
    void *library;   /* NULL: there is none */
    CUresult result; /* of cuInit() */
} driver = {.once = PTHREAD_ONCE_INIT};

/* The runtime has no session, whose settings it could use, and this library has a log of its own. A
 * text that cannot be read is heddle's libcuda's to complain about. */
static void
read_log_setting(void)
{
    (void)hed_log_setup(secure_getenv("HEDDLE_LOG"), NULL);
}

void
hed_rt_open_log(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, read_log_setting);
}

static void
load_driver(void)
{
    CUresult (*init)(unsigned int) = NULL;

    hed_rt_open_log();
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
