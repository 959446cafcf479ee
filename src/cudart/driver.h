/* The driver under the runtime: libcuda.so.1, whichever the loader finds.
 *
 *   cu->cuMemAlloc_v2(&p, n)   first call: first_cuMemAlloc_v2 --> hed_rt_bind() --> dlsym
 *                              later:      libcuda's function itself
 */
#pragma once

#include "gen/cudart_driver.h"

/* Reads from the environment what is logged. For those who log before the driver is loaded. */
void hed_rt_open_log(void);

/* The driver's function of this name, after cuInit(). NULL, with the result that the call has
 * then, if there is no driver, it does not start, or it lacks the function. */
void *hed_rt_bind(const char *name, CUresult *why);

/* Loads the driver, unless that is done, and tells how it began: without it, no call works. */
CUresult hed_rt_start(void);
