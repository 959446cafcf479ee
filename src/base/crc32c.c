/* CRC-32C: by the processor's instruction where it has one, otherwise by tables (slicing-by-8).
 *
 * The instruction takes eight bytes in three cycles, but begins a new one in every cycle. So three
 * lanes of a piece are computed at once, and joined: the CRC of a lane is moved over the lanes that
 * follow it by a table.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/crc.h"

#define POLYNOMIAL UINT32_C(0x82f63b78)
#define LANE 2048 /* bytes */

/* Constant once made. slices[k][b]: the CRC of byte b followed by k zero bytes. moves[k][b]: the
 * CRC whose byte k is b, moved over the bytes of a lane. */
static uint32_t slices[8][256];
static uint32_t moves[4][256];
static bool by_instruction;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static uint64_t
crc_word(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static uint32_t
crc32c_by_table(uint32_t crc, const unsigned char *s, size_t n)
{
    for (; n >= 8; s += 8, n -= 8) {
        const uint64_t v = crc_word(s) ^ crc;

        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= slices[7 - k][v >> 8 * k & 0xff];
    }
    for (; n > 0; s++, n--)
        crc = (crc >> 8) ^ slices[0][(crc ^ *s) & 0xff];
    return crc;
}

/* Moving is linear, so that the moves of single bits make those of all bytes. */
static void
make_moves(void)
{
    static const unsigned char zeros[LANE];

    for (int bit = 0; bit < 32; bit++) {
        const uint32_t moved = crc32c_by_table(UINT32_C(1) << bit, zeros, sizeof zeros);

        for (int b = 0; b < 256; b++) {
            if (b >> bit % 8 & 1)
                moves[bit / 8][b] ^= moved;
        }
    }
}

static void
make_crc32c_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        slices[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++) {
        for (int k = 1; k < 8; k++)
            slices[k][b] = (slices[k - 1][b] >> 8) ^ slices[0][slices[k - 1][b] & 0xff];
    }
    make_moves();
#if defined(__aarch64__)
    by_instruction = getauxval(AT_HWCAP) & HWCAP_CRC32;
#elif defined(__x86_64__)
    by_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

#if defined(__aarch64__) || defined(__x86_64__)

#if defined(__aarch64__)
#define CRC_TARGET
#define CRC_WORD(crc, v) \
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(v))
#define CRC_BYTE(crc, b) \
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)(b)))
#else
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(crc, v) ((crc) = (uint32_t)__builtin_ia32_crc32di((crc), (v)))
#define CRC_BYTE(crc, b) ((crc) = __builtin_ia32_crc32qi((crc), (b)))
#endif

static uint32_t
move_over_lane(uint32_t crc)
{
    return moves[0][crc & 0xff] ^ moves[1][crc >> 8 & 0xff] ^ moves[2][crc >> 16 & 0xff] ^
           moves[3][crc >> 24];
}

CRC_TARGET static uint32_t
crc32c_by_instruction(uint32_t crc, const unsigned char *s, size_t n)
{
    for (; n >= (size_t)3 * LANE; s += 3 * LANE, n -= (size_t)3 * LANE) {
        uint32_t second = 0, third = 0;

        for (int i = 0; i < LANE; i += 8) {
            CRC_WORD(crc, crc_word(s + i));
            CRC_WORD(second, crc_word(s + LANE + i));
            CRC_WORD(third, crc_word(s + 2 * LANE + i));
        }
        crc = move_over_lane(move_over_lane(crc) ^ second) ^ third;
    }
    for (; n >= 8; s += 8, n -= 8)
        CRC_WORD(crc, crc_word(s));
    for (; n > 0; s++, n--)
        CRC_BYTE(crc, *s);
    return crc;
}
#else
static uint32_t
crc32c_by_instruction(uint32_t crc, const unsigned char *s, size_t n)
{
    return crc32c_by_table(crc, s, n); /* by_instruction is false */
}
#endif

uint32_t
hed_crc32c(uint32_t crc, const void *p, size_t n)
{
    pthread_once(&tables_once, make_crc32c_tables);
    return ~(by_instruction ? crc32c_by_instruction(~crc, p, n) : crc32c_by_table(~crc, p, n));
}

uint32_t
hed_crc32c_by_table(uint32_t crc, const void *p, size_t n)
{
    pthread_once(&tables_once, make_crc32c_tables);
    return ~crc32c_by_table(~crc, p, n);
}
