/* A copy of a meeting's file, for whoever only looks.
 *
 * What others write meanwhile does not change the copy, so a number that was checked stays as it
 * was; and a process that cuts the file short ends nobody who reads it. Looking needs no lock, and
 * no right to write. root can look at the files of other users.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "share/meet/meet.h"

struct hed_meeting_folder;
struct hed_meet_copy;

/* Copies FOLDER/NAME. HED_ENOTFOUND if there is no such file, or one of another layout that nobody
 * uses; HED_EVERSION, HED_EACCESS, HED_ENOMEM, HED_EIO. */
int hed_meet_copy(const struct hed_meeting_folder *folder, const char *name,
                  const struct hed_meet_shape *shape, struct hed_meet_copy **out,
                  struct hed_why *why);
void hed_meet_copy_free(struct hed_meet_copy *c); /* NULL is allowed */

uid_t hed_meet_copy_user(const struct hed_meet_copy *c); /* that the file belongs to */
const void *hed_meet_copy_common(const struct hed_meet_copy *c);
const void *hed_meet_copy_slot(const struct hed_meet_copy *c, uint32_t index); /* index < slots */

/* Does a living process have the slot now? Asks the kernel: one system call. */
bool hed_meet_copy_taken(const struct hed_meet_copy *c, uint32_t index);
