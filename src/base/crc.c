/* CRC-32, eight bytes at a time: with ARM's instruction for this polynomial where the processor has
 * it, otherwise by tables (slicing-by-8).
 */
#include "base/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0xedb88320)

/* table[k][b]: the CRC of byte b followed by k zero bytes. Constant once made. */
static uint32_t table[8][256];
static bool has_instruction; /* the same */
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static void
set_up(void)
{
#if defined(__aarch64__)
    has_instruction = getauxval(AT_HWCAP) & HWCAP_CRC32;
#endif
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        table[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++) {
        for (int k = 1; k < 8; k++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
    }
}

static uint32_t
load_u32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

#if defined(__aarch64__)
static uint32_t
add_by_instruction(uint32_t crc, const unsigned char *s, size_t n)
{
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t v;

        memcpy(&v, s, sizeof(v));
        __asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(crc) : "r"(v));
    }
    for (; n > 0; s++, n--)
        __asm__(".arch_extension crc\n\tcrc32b %w0, %w0, %w1" : "+r"(crc) : "r"(*s));
    return crc;
}
#else
static uint32_t
add_by_instruction(uint32_t crc, const unsigned char *s, size_t n)
{
    (void)s;
    (void)n;
    return crc; /* has_instruction is false */
}
#endif

static uint32_t
add_by_table(uint32_t crc, const unsigned char *s, size_t n)
{
    for (; n >= 8; s += 8, n -= 8) {
        const uint32_t low = load_u32(s) ^ crc;
        const uint32_t high = load_u32(s + 4);

        crc = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^ table[5][(low >> 16) & 0xff] ^
              table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][(high >> 8) & 0xff] ^
              table[1][(high >> 16) & 0xff] ^ table[0][high >> 24];
    }
    for (; n > 0; s++, n--)
        crc = (crc >> 8) ^ table[0][(crc ^ *s) & 0xff];
    return crc;
}

uint32_t
hed_crc32(uint32_t crc, const void *p, size_t n)
{
    pthread_once(&setup_once, set_up);
    return ~(has_instruction ? add_by_instruction(~crc, p, n) : add_by_table(~crc, p, n));
}
