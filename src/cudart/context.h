/* Contexts: which one the calls of a thread use.
 *
 * A thread uses its current context, whoever made it current. If it has none, it gets the primary
 * context of its device: hed_rt_arrive() sees to that before its first call, and hed_rt_enter()
 * when a driver call has failed because the context that it had is gone. Asking before every call
 * would cost as much as the call.
 */
#pragma once

#include <stdbool.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

/* Gives the thread a context if it has none, or if the one that it has was reset. */
cudaError_t hed_rt_arrive(void);

/* Never 0, and another number after each cudaDeviceReset(). */
extern _Atomic unsigned hed_rt_age;

/* Whether a call that failed with `*r` failed for the lack of a context, and there is one now: then
 * the call is made again. If there cannot be one, `*r` becomes the reason. */
bool hed_rt_enter(cudaError_t *r);

/* How often a call is made at most. Other threads may take a new context away at once, but not for
 * ever; and a call may say that its stream's context is gone, whatever the thread's is. */
#define HED_RT_TRIES 8

/* The device of the current context, or else the one whose context the thread would get. */
cudaError_t hed_rt_device(int *out);

/* The primary context of a device, which is made if need be. It is not made current. */
cudaError_t hed_rt_primary(int device, CUcontext *out);

/* The same for a device other than the current one. Others may have reset it, which a call that is
 * only given its context would tell as an error. */
cudaError_t hed_rt_peer(int device, CUcontext *out);

/* Whether a context is the primary one of this device. */
bool hed_rt_is_primary(CUcontext context, int device);
/* Whether a context lives and is not the primary one. A primary one that was reset is none. */
bool hed_rt_is_others_context(CUcontext context, int device);
