/* Files that a saved program was writing from beginning to end: a log, for example. When the
 * program goes back to a snapshot, it writes what came after that again, so the files are cut to
 * the size that they had. CRIU refuses files of another size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_criu_process;
struct hed_why;

/* Calls visit for each of these files in CRIU's image of open files (files.img): those that were
 * open for writing only, but not for appending, with everything written up to their end. Any bytes
 * are safe. */
void hed_snap_tails_each(const void *image, size_t size,
                         void (*visit)(void *arg, const char *path, uint64_t size), void *arg);

/* Cuts those that have grown since, except for standard streams, which others write to as well.
 * Returns how many were cut. */
unsigned hed_snap_tails_cut(const char *folder, const struct hed_criu_process *p);

/* Does every open file in the image have the size that it had, or can be cut to that? Otherwise
 * CRIU would refuse it: HED_ESTATE, with its name. */
int hed_snap_tails_check(const void *image, size_t size, const struct hed_criu_process *p,
                         struct hed_why *why);
