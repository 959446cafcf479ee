/* A file as bytes: mapped, not read, so that only the parts that are used cost anything. If another
 * process truncates the file meanwhile, an access fails with SIGBUS, as with every mapping.
 */
#pragma once

#include "kernel/fatbin/bytes.h"

struct hed_why;

/* An empty file gives empty bytes. HED_EINVAL if it is not a regular file. */
int hed_fatbin_map(const char *path, struct hed_bytes *out, struct hed_why *why);
void hed_fatbin_unmap(struct hed_bytes b);
