/* Relocations. See reloc.h. S, A and P below are the letters of the ELF supplements: symbol,
 * addend, place. */
#include "kernel/ptx/run/reloc.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"

/* Relocations that <elf.h> of older C libraries lacks. */
#ifndef R_X86_64_GOTPCRELX
#define R_X86_64_GOTPCRELX 41
#define R_X86_64_REX_GOTPCRELX 42
#endif

struct row {
    uint32_t type;
    enum hed_reloc_want want;
    unsigned bytes;
};

static const struct row aarch64[] = {
    {R_AARCH64_NONE, HED_RELOC_NOTHING, 0},
    {R_AARCH64_ABS64, HED_RELOC_ADDRESS, 8},
    {R_AARCH64_PREL64, HED_RELOC_ADDRESS, 8},
    {R_AARCH64_PREL32, HED_RELOC_ADDRESS, 4},
    {R_AARCH64_CALL26, HED_RELOC_CALL, 4},
    {R_AARCH64_JUMP26, HED_RELOC_CALL, 4},
    {R_AARCH64_ADR_PREL_LO21, HED_RELOC_CALL, 4},
    {R_AARCH64_ADR_PREL_PG_HI21, HED_RELOC_CALL, 4},
    {R_AARCH64_ADD_ABS_LO12_NC, HED_RELOC_CALL, 4},
    {R_AARCH64_LDST8_ABS_LO12_NC, HED_RELOC_DATA, 4},
    {R_AARCH64_LDST16_ABS_LO12_NC, HED_RELOC_DATA, 4},
    {R_AARCH64_LDST32_ABS_LO12_NC, HED_RELOC_DATA, 4},
    {R_AARCH64_LDST64_ABS_LO12_NC, HED_RELOC_DATA, 4},
    {R_AARCH64_LDST128_ABS_LO12_NC, HED_RELOC_DATA, 4},
    {R_AARCH64_ADR_GOT_PAGE, HED_RELOC_GOT, 4},
    {R_AARCH64_LD64_GOT_LO12_NC, HED_RELOC_GOT, 4},
};

static const struct row x86_64[] = {
    {R_X86_64_NONE, HED_RELOC_NOTHING, 0},  {R_X86_64_64, HED_RELOC_ADDRESS, 8},
    {R_X86_64_PC64, HED_RELOC_ADDRESS, 8},  {R_X86_64_32, HED_RELOC_ADDRESS, 4},
    {R_X86_64_32S, HED_RELOC_ADDRESS, 4},   {R_X86_64_PC32, HED_RELOC_CALL, 4},
    {R_X86_64_PLT32, HED_RELOC_CALL, 4},    {R_X86_64_GOTPCREL, HED_RELOC_GOT, 4},
    {R_X86_64_GOTPCRELX, HED_RELOC_GOT, 4}, {R_X86_64_REX_GOTPCRELX, HED_RELOC_GOT, 4},
};

enum hed_reloc_want
hed_reloc_want(unsigned machine, uint32_t type, unsigned *bytes)
{
    const bool arm = machine == EM_AARCH64;
    const struct row *rows = arm ? aarch64 : x86_64;
    const size_t count = arm ? sizeof aarch64 / sizeof *aarch64 : sizeof x86_64 / sizeof *x86_64;

    for (size_t i = 0; i < count; i++) {
        if (rows[i].type == type) {
            *bytes = rows[i].bytes;
            return rows[i].want;
        }
    }
    return HED_RELOC_UNKNOWN;
}

/* Does v fit a signed number of that many bits? */
static bool
fits_signed(int64_t v, unsigned bits)
{
    return v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1);
}

static void
store_word32(unsigned char *at, uint64_t v)
{
    const uint32_t low = (uint32_t)v;

    memcpy(at, &low, sizeof low);
}

/* Replaces `bits` bits of the instruction, from bit `from` on. */
static void
put_field(unsigned char *at, unsigned from, unsigned bits, uint64_t v)
{
    const uint32_t mask = ((UINT32_C(1) << bits) - 1) << from;
    uint32_t instruction;

    memcpy(&instruction, at, sizeof instruction);
    instruction = (instruction & ~mask) | ((uint32_t)(v << from) & mask);
    memcpy(at, &instruction, sizeof instruction);
}

/* ADR and ADRP: two bits at bit 29, the other nineteen at bit 5. */
static int
put_adr(unsigned char *at, int64_t v)
{
    if (!fits_signed(v, 21))
        return HED_ERANGE;
    put_field(at, 29, 2, (uint64_t)v & 3);
    put_field(at, 5, 19, ((uint64_t)v >> 2) & 0x7ffff);
    return 0;
}

static int64_t
pages_between(uint64_t from, uint64_t to)
{
    return (int64_t)((to & ~UINT64_C(0xfff)) - (from & ~UINT64_C(0xfff))) >> 12;
}

/* The low twelve bits of an address, counted in units of 1 << shift bytes. */
static int
put_low12(unsigned char *at, uint64_t v, unsigned shift)
{
    if ((v & ((UINT64_C(1) << shift) - 1)) != 0)
        return HED_ERANGE;
    put_field(at, 10, 12, (v & 0xfff) >> shift);
    return 0;
}

static int
apply_aarch64(uint32_t type, unsigned char *at, uint64_t place, uint64_t v)
{
    const int64_t distance = (int64_t)(v - place);

    switch (type) {
    case R_AARCH64_ABS64:
        memcpy(at, &v, sizeof v);
        return 0;
    case R_AARCH64_PREL64:
        memcpy(at, &distance, sizeof distance);
        return 0;
    case R_AARCH64_PREL32:
        if (!fits_signed(distance, 32))
            return HED_ERANGE;
        store_word32(at, (uint64_t)distance);
        return 0;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (!fits_signed(distance, 28) || (distance & 3) != 0)
            return HED_ERANGE;
        put_field(at, 0, 26, (uint64_t)distance >> 2);
        return 0;
    case R_AARCH64_ADR_PREL_LO21:
        return put_adr(at, distance);
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADR_GOT_PAGE:
        return put_adr(at, pages_between(place, v));
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
        return put_low12(at, v, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC:
        return put_low12(at, v, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
        return put_low12(at, v, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LD64_GOT_LO12_NC:
        return put_low12(at, v, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
        return put_low12(at, v, 4);
    default:
        return HED_ENOTSUP;
    }
}

static int
apply_x86_64(uint32_t type, unsigned char *at, uint64_t place, uint64_t v)
{
    const int64_t distance = (int64_t)(v - place);

    switch (type) {
    case R_X86_64_64:
        memcpy(at, &v, sizeof v);
        return 0;
    case R_X86_64_PC64:
        memcpy(at, &distance, sizeof distance);
        return 0;
    case R_X86_64_32:
        if (v > UINT32_MAX)
            return HED_ERANGE;
        store_word32(at, v);
        return 0;
    case R_X86_64_32S:
        if (!fits_signed((int64_t)v, 32))
            return HED_ERANGE;
        store_word32(at, v);
        return 0;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        if (!fits_signed(distance, 32))
            return HED_ERANGE;
        store_word32(at, (uint64_t)distance);
        return 0;
    default:
        return HED_ENOTSUP;
    }
}

int
hed_reloc_apply(unsigned machine, uint32_t type, unsigned char *at, uint64_t place, uint64_t s,
                int64_t a)
{
    const uint64_t v = s + (uint64_t)a;

    return machine == EM_AARCH64 ? apply_aarch64(type, at, place, v)
                                 : apply_x86_64(type, at, place, v);
}

void
hed_reloc_jump(unsigned machine, unsigned char *at, uint64_t target)
{
    /* ldr x16, the word 8 bytes on; br x16; the address. Linkers may use x16. */
    static const unsigned char arm[8] = {0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6};
    /* jmp *0(%rip); the address; two bytes that are never executed. */
    static const unsigned char intel[6] = {0xff, 0x25, 0, 0, 0, 0};

    memset(at, 0xcc, HED_RELOC_JUMP);
    if (machine == EM_AARCH64) {
        memcpy(at, arm, sizeof arm);
        memcpy(at + sizeof arm, &target, sizeof target);
    } else {
        memcpy(at, intel, sizeof intel);
        memcpy(at + sizeof intel, &target, sizeof target);
    }
}
