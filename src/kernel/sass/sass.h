/* Machine code of NVIDIA GPUs (SASS) as sm_75 to sm_90 have it: from the 128 bits of an instruction
 * to a small struct, and from there to the text that nvdisasm prints. The encoding is described in
 * spec/sass; this room only interprets the tables that are made from it. docs/internals/sass.md is
 * the guide.
 *
 * Nothing here trusts the code: every bit pattern gives a result or an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/sass_kinds.h"

struct hed_buf;

#define HED_SASS_BYTES 16 /* of an instruction */
#define HED_SASS_RZ 255   /* reads as zero, ignores writes */
#define HED_SASS_URZ 63
#define HED_SASS_PT 7 /* the predicate that is always true; UPT too */

/* A field with spellings: the word is "" if nothing is written, NULL if the value is reserved. */
struct hed_sass_choice {
    const char *word;
    uint32_t value;
};

struct hed_sass_operand {
    enum hed_sass_kind kind;
    bool negate;     /* -x; of a predicate: !p */
    bool invert;     /* ~x */
    bool absolute;   /* |x| */
    bool reuse;      /* the register's value stays in the operand cache */
    bool inside;     /* the spelling is written inside of the bars of |x| */
    bool joined;     /* written after the operand before it, without a comma */
    uint32_t reg;    /* register, predicate, barrier; the register of an address */
    uint32_t ureg;   /* uniform register of an address; HED_SASS_URZ if it has none */
    uint32_t bank;   /* of a constant */
    int64_t value;   /* immediate, offset, target as an offset from the next instruction */
    bool wide;       /* an address whose register is a pair */
    bool has_ureg;   /* the uniform register belongs to the address */
    bool descriptor; /* it is a memory descriptor */
    enum hed_sass_style style;     /* of an address: how its registers are written */
    struct hed_sass_choice choice; /* halves, scale of an index, spelling */
};

struct hed_sass_inst {
    const char *name;
    uint64_t low, high; /* the 128 bits */
    unsigned arch;      /* 80 for sm_80 */
    uint16_t opcode;    /* bits 0..11: opcode and form */
    uint8_t guard;      /* predicate; HED_SASS_PT if it always runs */
    bool guard_not;
    bool uniform; /* it runs once for the warp: the guard is a uniform predicate */
    uint8_t modifier_count;
    uint8_t operand_count;
    struct hed_sass_choice modifiers[HED_SASS_MODIFIERS];
    struct hed_sass_operand operands[HED_SASS_OPERANDS];
    uint8_t stall; /* cycles until the next instruction may issue */
    bool yield;
    uint8_t write_barrier; /* scoreboard that the result sets; 7 for none */
    uint8_t read_barrier;  /* scoreboard that reading the operands sets; 7 for none */
    uint8_t wait;          /* mask of scoreboards that it waits for */
};

/* At most 64 bits of the instruction, from a bit on. */
uint64_t hed_sass_bits(const struct hed_sass_inst *inst, unsigned bit, unsigned width);

/* arch is the number of the architecture: 80 for sm_80. HED_ENOTSUP if the opcode is unknown. */
int hed_sass_decode(unsigned arch, const uint8_t bytes[HED_SASS_BYTES], struct hed_sass_inst *out);

/* Is every bit that is set part of a field that the opcode is known to have? Others are modifiers
 * of an architecture that we do not know. */
bool hed_sass_is_understood(const struct hed_sass_inst *inst);

/* ---- print.c --------------------------------------------------------------------------------- */

/* Names to be written instead of numbers. */
struct hed_sass_naming {
    /* Appends the name of a branch's target, or returns false: then the address is written. May be
     * NULL. */
    bool (*label)(void *arg, uint64_t address, struct hed_buf *out);
    void *arg;
    const char *symbol; /* instead of the immediate, constant or offset; NULL for the number */
};

/* Appends the instruction at an address, as nvdisasm writes it, without the semicolon. naming may
 * be NULL. */
void hed_sass_print(const struct hed_sass_inst *inst, uint64_t address,
                    const struct hed_sass_naming *naming, struct hed_buf *out);

/* The address that an instruction branches to; false if it does not name one. */
bool hed_sass_target(const struct hed_sass_inst *inst, uint64_t address, uint64_t *out);
