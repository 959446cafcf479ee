/* CRC-32 as in zlib, PNG and gzip: polynomial 0xEDB88320, reflected. For finding damage, not
 * tampering.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The CRC of n more bytes after those that gave crc; begin with 0. p may be NULL when n is 0. Any
 * thread, any time.
 */
uint32_t hed_crc32(uint32_t crc, const void *p, size_t n);
