/* A number for what is in an executable or a library. */
#pragma once

#include <stdint.h>

/* The same for the same content, whenever and wherever the file was installed: from the build id
 * that the linker has put in, otherwise from all bytes. 0 if the file cannot be read. */
uint64_t hed_file_identity(const char *path);
