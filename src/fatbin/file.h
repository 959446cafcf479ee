/* A file as bytes: mapped, not read, so that a library of gigabytes costs what is looked at. Who
 * cuts the file short meanwhile takes the pages away from under us (SIGBUS), as for every map.
 */
#pragma once

#include "fatbin/bytes.h"

struct hed_why;

/* An empty file is empty bytes. Regular files only: HED_EINVAL for others. */
int hed_fatbin_map(const char *path, struct hed_bytes *out, struct hed_why *why);
void hed_fatbin_unmap(struct hed_bytes b);
