/* Memory of another process that cannot shrink, so that mapping it is safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is the descriptor ordinary memory (a memfd) of at least `size` bytes that can never shrink?
 * Touching memory behind the end of a file, or a file of large pages of which none is left, would
 * kill this process. A file of a disk could also keep it waiting. */
bool hed_fd_is_sealed(int fd, uint64_t size);

/* Has the file grown to at least `size` bytes? For a descriptor that is sealed. */
bool hed_fd_has(int fd, uint64_t size);
