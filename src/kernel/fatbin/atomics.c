/* Finding system-wide atomics. See atomics.h.
 *
 * An instruction of sm_70 and newer has 128 bits. The low 9 bits say what it does. Bits 77 and up
 * are the scope of a memory operation: up to sm_7x two bits of which 3 is the system, later four
 * bits of which 10 is the system. Found by compiling the same operations for several scopes and
 * architectures (75, 80, 90, 100, 120) and comparing the bytes.
 */
#include "kernel/fatbin/atomics.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

#include "kernel/fatbin/codes.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/elf.h"

#define INSTRUCTION 16     /* bytes */
#define SCOPE_AT (77 - 64) /* in the high half of an instruction */

/* ---- PTX ------------------------------------------------------------------------------------- */

/* The beginning of the word that `at` is in: letters, digits, dots and the like. */
static const char *
word_start(const char *from, const char *at)
{
    while (at > from && (isalnum((unsigned char)at[-1]) || at[-1] == '.' || at[-1] == '_' ||
                         at[-1] == ':' || at[-1] == '$'))
        at--;
    return at;
}

bool
hed_ptx_has_system_atomics(struct hed_bytes text)
{
    const char *from = (const char *)text.data, *end = from + text.size, *at = from;

    while (at && (at = memmem(at, (size_t)(end - at), ".sys", 4))) {
        const char *word = word_start(from, at);
        const bool ends = at + 4 == end || !isalnum((unsigned char)at[4]);

        if (ends && ((at - word >= 4 && memcmp(word, "atom", 4) == 0) ||
                     (at - word >= 3 && memcmp(word, "red", 3) == 0)))
            return true;
        at += 4;
    }
    return false;
}

/* ---- machine code ---------------------------------------------------------------------------- */

static bool
is_atomic(uint64_t low)
{
    switch (low & 0x1ff) {
    case 0x18a: /* of any memory; compare and swap */
    case 0x18b:
    case 0x18e: /* without a result */
    case 0x1a2: /* floating-point, of any memory; of global memory; without a result */
    case 0x1a3:
    case 0x1a6:
    case 0x1a8: /* of global memory; compare and swap */
    case 0x1a9:
        return true;
    default:
        return false;
    }
}

static bool
has_system_scope(uint64_t high, uint32_t arch)
{
    return arch < 80 ? (high >> SCOPE_AT & 3) == 3 : (high >> SCOPE_AT & 15) == 10;
}

static bool
text_has_system_atomics(struct hed_bytes code, uint32_t arch)
{
    for (size_t at = 0; at + INSTRUCTION <= code.size; at += INSTRUCTION)
        if (is_atomic(hed_load_u64(code.data + at)) &&
            has_system_scope(hed_load_u64(code.data + at + 8), arch))
            return true;
    return false;
}

bool
hed_cubin_has_system_atomics(struct hed_bytes cubin)
{
    struct hed_elf_file o;
    struct hed_elf_section s;
    struct hed_arch arch;

    if (hed_elf_file_read(cubin, &o, NULL) != 0 || hed_cubin_arch(cubin, &arch, NULL) != 0 ||
        arch.number < 70)
        return false;
    for (uint32_t i = 0; i < o.count; i++)
        if (hed_elf_file_section(&o, i, &s) && s.type == SHT_PROGBITS && s.name.size > 6 &&
            memcmp(s.name.data, ".text.", 6) == 0 && text_has_system_atomics(s.bytes, arch.number))
            return true;
    return false;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int
code_has_system_atomics(void *arg, bool is_ptx, struct hed_bytes code)
{
    (void)arg;
    return is_ptx ? hed_ptx_has_system_atomics(code) : hed_cubin_has_system_atomics(code);
}

bool
hed_image_has_system_atomics(struct hed_bytes image)
{
    return hed_image_codes(image, code_has_system_atomics, NULL) == 1;
}
