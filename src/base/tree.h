/* A process with all its descendants: ending them, and finding the program that one is the parent
 * of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes this process inherit descendants whose parents end, so that they can be waited for. */
void hed_tree_adopt(void);

/* Kills a child of ours and its descendants, and waits until the descendants are gone. The child
 * itself is left for the caller to wait for. */
void hed_tree_kill(pid_t pid);

#define HED_TREE_FOUND 256 /* descendants that are looked at */

/* A heddle command may be the parent of the program that it has started (run --ckpt, snap restore),
 * and its number is the one that the shell knows. If `pid` is a heddle command, finds its
 * descendants, the nearest first; otherwise none. Returns how many were put into `out`. */
bool hed_tree_is_heddle(pid_t pid);
size_t hed_tree_below_heddle(pid_t pid, pid_t out[HED_TREE_FOUND]);
