/* The steps of the sandbox, each in the file of its mechanism (sandbox.h lists them). Each returns
 * 0, or a negative errno; it may set a reason that says more than the errno.
 */
#pragma once

#include "remote/server/sandbox/sandbox.h"

#define HED_SANDBOX_DECLARE(token, name, needed) \
    int hed_step_##name(const struct hed_sandbox *s, struct hed_why *why);
HED_SANDBOX_STEPS(HED_SANDBOX_DECLARE)
#undef HED_SANDBOX_DECLARE
