/* Reading and writing whole ranges of bytes, whatever signals come. */
#pragma once

#include <stddef.h>

/* Reads exactly n bytes. HED_ETRUNC at the end of the file, or the error of read(2). */
int hed_read_all(int fd, void *p, size_t n);

/* Writes all n bytes, or gives the error of write(2). */
int hed_write_all(int fd, const void *p, size_t n);

/* Reads the beginning of a small file, such as one of the kernel's, into out, as text; "" if it
 * cannot be read. Returns out. */
const char *hed_read_small(const char *path, char *out, size_t size);
