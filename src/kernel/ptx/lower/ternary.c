/* vpternlog computes any function of three operands, as a table of eight bits says. LLVM 16 to 22
 * sorts the operands so that the one in memory comes last, and gives two of the six orders each
 * other's table: the result is another function of the right operands (LLVM's issue 157929; most
 * often a sign is wrong). That happens where the instruction also merges its result under a mask,
 * and nowhere else. Such an instruction may as well be right, but nothing in it tells, so a kernel
 * that has one is compiled again without AVX-512.
 *
 *     62  R X B R' 0 mmm  W vvvv 1 pp  z L'L b V' aaa  25  modrm
 *                    011           01  0          not 0     mod not 3: in memory
 */
#include "kernel/ptx/lower/ternary.h"

#include <string.h>

#define PREFIX 0x62
#define OPCODE 0x25

static bool
is_merging_ternary_of_memory(const unsigned char *p)
{
    return p[0] == PREFIX && (p[1] & 0x0f) == 3 && (p[2] & 7) == (4 | 1) && !(p[3] & 0x80) &&
           (p[3] & 7) != 0 && p[4] == OPCODE && p[5] >> 6 != 3;
}

bool
hed_lower_may_be_wrong_ternary(const unsigned char *code, size_t size)
{
    const unsigned char *end = code + size;

    for (const unsigned char *p = code; (size_t)(end - p) >= 6; p++) {
        p = memchr(p, PREFIX, (size_t)(end - p) - 5);
        if (!p)
            return false;
        if (is_merging_ternary_of_memory(p))
            return true;
    }
    return false;
}

bool
hed_lower_without_avx512(const char *features, char *out, size_t size)
{
    static const char avx512[] = "+avx512";
    bool has = false;
    size_t n = 0;

    while (*features) {
        const size_t length = strcspn(features, ",");
        const bool goes = strncmp(features, avx512, sizeof(avx512) - 1) == 0;

        has = has || goes;
        if (!goes && n + length + 2 <= size) {
            if (n)
                out[n++] = ',';
            memcpy(out + n, features, length);
            n += length;
        }
        features += length + (features[length] == ',');
    }
    out[n] = 0;
    return has;
}
