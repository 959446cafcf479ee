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

/* CRC-32C (Castagnoli), as in iSCSI and ext4: polynomial 0x82F63B78, reflected. At the speed of
 * memory where the processor has an instruction for it. The second never uses that, for tests. */
uint32_t hed_crc32c(uint32_t crc, const void *p, size_t n);
uint32_t hed_crc32c_by_table(uint32_t crc, const void *p, size_t n);
