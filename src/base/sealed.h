/* Memory of another process that cannot shrink, so that mapping it is safe; and small files in
 * memory that one process writes and others read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the descriptor ordinary memory (a memfd) of at least `size` bytes that can never shrink?
 * Touching memory behind the end of a file, or a file of large pages of which none is left, would
 * kill this process. A file of a disk could also keep it waiting. */
bool hed_fd_is_sealed(int fd, uint64_t size);

/* Is it ordinary memory whose size can never change? `taken` is how much there really is of it:
 * less than its size if it has holes, a little more if the system gives large pages to files. */
bool hed_fd_is_fixed(int fd, uint64_t *size, uint64_t *taken);

/* Is it ordinary memory of exactly `size` bytes that nobody can change any more, as
 * hed_fd_write_sealed() makes it? */
bool hed_fd_is_final(int fd, uint64_t size);

/* Has the file grown to at least `size` bytes? For a descriptor that is sealed. */
bool hed_fd_has(int fd, uint64_t size);

/* Makes a file in memory of these bytes, which nobody can change. HED_ENOMEM. */
int hed_fd_write_sealed(const char *name, const void *bytes, size_t size, int *fd);
/* Reads a file of exactly `size` bytes, of which nothing else is known. HED_EINVAL. */
int hed_fd_read_whole(int fd, void *bytes, size_t size);
