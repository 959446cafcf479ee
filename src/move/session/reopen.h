/* Libraries of the program at another worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/client.h"

/* Opens a library at another worker under the same number, and finds its kernels there. *there and
 * *order become the caller's. */
CUresult hed_remote_open_at(struct hed_remote *r, struct hed_remote_library *c,
                            struct hed_remote_library **there, uint32_t **order,
                            struct hed_why *why);
/* Opens all libraries at another worker. It has those of the standby already, if there is one. */
CUresult hed_remote_open_again(struct hed_remote *r, struct hed_remote *standby,
                               struct hed_why *why);
/* Can kernels of a library allocate device memory? The agent's. */
bool hed_remote_allocates(struct hed_remote *r, struct hed_remote_library *c);
/* Can kernels of the program allocate device memory themselves? Returns the name of one of the
 * kernels of such a library, or NULL. For when the program is held. */
const char *hed_remote_allocating_kernel(struct hed_remote *r);
/* The new worker is accepted, or it is not and the one before goes on. */
void hed_remote_opened(struct hed_remote *r, bool accepted);
