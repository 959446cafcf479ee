/* Ending a process with all its descendants. */
#pragma once

#include <sys/types.h>

/* Makes this process inherit descendants whose parents end, so that they can be waited for. */
void hed_tree_adopt(void);

/* Kills a child of ours and its descendants, and waits until the descendants are gone. The child
 * itself is left for the caller to wait for. */
void hed_tree_kill(pid_t pid);
