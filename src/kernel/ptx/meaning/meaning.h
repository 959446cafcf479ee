/* What an instruction asks for, or why it is refused: decided here, for both tiers.
 *
 *   inst --hed_ptx_get_meaning()--> meaning --+--> interp/   steps
 *                              \--> refused   +--> lower/    LLVM's code
 *
 * A tier calls hed_ptx_get_meaning() once for each instruction, before it does anything else with
 * it. The result says in short what the form and the operands of a family say at length, and that
 * the tiers can do it. How it is computed is not here: each tier does that on its own, so that each
 * tests the other. What only one tier cannot do, it refuses itself.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"

struct hed_why;

#define HED_PTX_TEXTURE_DATA 4 /* results or elements of an access, at most */

/* tex tld4 suld sust sured, and txq suq, which have only the object and, in in[0], the level. A
 * sink stands for what is not given: it reads as 0. */
struct hed_ptx_texture {
    struct hed_rt_access access;
    struct hed_ptx_operand object;                     /* .b64 */
    struct hed_ptx_operand in[HED_RT_COORDINATES];     /* .b32, in the order of hed_rt_texture() */
    struct hed_ptx_operand data[HED_PTX_TEXTURE_DATA]; /* results, or of stores the elements */
    unsigned count;                                    /* of data */
    unsigned step;                                     /* bytes from one of them to the next */
    const struct hed_ptx_operand *resident; /* takes whether the memory is there; or NULL */
};

#define HED_PTX_MATRIX_WORDS 96 /* 32-bit words of a lane that go in or come out, at most */

/* Registers that hold a lane's share of a matrix: hed_ptx_nth_element() of 0 to count - 1. */
struct hed_ptx_fragment {
    struct hed_ptx_operand operand;
    unsigned count;
    bool is_wide; /* each register is 64 bits, two words */
};

/* A matrix instruction: words of all lanes go to a function of run/group.h, and others come back.
 * First goes the address, if there is one, which is two words. */
struct hed_ptx_fragments {
    const char *name; /* of the function */
    hed_rt_together fn;
    uint64_t arg;                          /* for it */
    const struct hed_ptx_operand *address; /* or NULL */
    struct hed_ptx_fragment in[5];
    unsigned nin;                /* fragments */
    struct hed_ptx_fragment out; /* count is 0 if nothing comes back */
    unsigned words_in, words_out;
};

/* atom and red. */
struct hed_ptx_atomic {
    const struct hed_ptx_operand *to; /* NULL for red */
    const struct hed_ptx_operand *memory;
    const struct hed_ptx_operand *from; /* what is compared, for cas */
    const struct hed_ptx_operand *swap; /* of cas, else NULL */
    unsigned bytes, count;              /* of an element; elements */
};

/* cp.async and cp.async.bulk */
struct hed_ptx_copy {
    unsigned bytes; /* of cp.async */
    /* How many of them come from the source (.u32); zeros follow. NULL: all. If it is a predicate
     * that holds, none do. */
    const struct hed_ptx_operand *take;
    bool take_is_predicate;
    const struct hed_ptx_operand *barrier; /* of bulk copies: it counts the bytes; or NULL */
};

/* mbarrier.arrive and .arrive_drop. NULL: not given, which is 1 arrival, 0 bytes. */
struct hed_ptx_arrival {
    const struct hed_ptx_operand *state; /* takes the state before */
    const struct hed_ptx_operand *barrier, *count, *bytes;
    bool drops; /* the threads that arrive leave for good */
};

enum hed_ptx_conversion {
    HED_PTX_INT_TO_INT,
    HED_PTX_INT_TO_REAL,
    HED_PTX_REAL_TO_INT,
    HED_PTX_REAL_TO_REAL,
    HED_PTX_PAIR_TO_HALVES, /* narrow floats to .f16x2, or exponents to .bf16x2 */
    HED_PTX_FLOATS_TO_PAIR, /* two .f32 */
    HED_PTX_HALVES_TO_PAIR,
};

/* The functions that every GPU has. */
enum hed_ptx_builtin {
    HED_PTX_VPRINTF,
    HED_PTX_MALLOC,
    HED_PTX_FREE,
    HED_PTX_SET_CONDITION,
    HED_PTX_ASSERTFAIL, /* the calling thread ends */
    HED_PTX_BUILTINS,
};

/* Whom a call calls. */
struct hed_ptx_callee {
    enum {
        HED_PTX_CALLS_FUNCTION,
        HED_PTX_CALLS_POINTER, /* operand 1 */
        HED_PTX_CALLS_BUILTIN,
        HED_PTX_CALLS_DEVICE, /* the device runtime: base/device_calls.h */
    } kind;
    const struct hed_ptx_func *func; /* of CALLS_FUNCTION: with a body */
    const struct hed_ptx_sig *sig;   /* of CALLS_FUNCTION and CALLS_POINTER */
    /* Of CALLS_BUILTIN and CALLS_DEVICE. */
    unsigned number;  /* enum hed_ptx_builtin, enum hed_device_call_number */
    const char *args; /* a letter each: w for 32 bits, l and p for 64, d for a dim3 in a variable */
    char result;      /* w, l, or 0 for none */
};

/* Which one is set follows from the opcode. Pointers lead into the instruction. */
struct hed_ptx_meaning {
    union {
        struct hed_ptx_texture texture;
        struct hed_ptx_fragments matrix;
        struct hed_ptx_atomic atomic;
        struct hed_ptx_copy copy;
        struct hed_ptx_arrival arrival;
        struct hed_ptx_callee callee;
        enum hed_ptx_conversion conversion;
        /* enum hed_rt_reduce of barrier.red, hed_rt_shfl, hed_rt_vote, hed_rt_redux */
        unsigned operation;
        unsigned align; /* of alloca */
    };
};

/* The number that stands for an access in calls of the runtime. */
uint64_t hed_ptx_pack_access(const struct hed_rt_access *a);

/* Says what an instruction of a function asks for. HED_ENOTSUP if it is refused; `why` has the bare
 * reason. */
int hed_ptx_get_meaning(const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
                        struct hed_ptx_meaning *m, struct hed_why *why);

/* Why an operand has no value of type t, or cannot take one; NULL if it has, or can. */
const char *hed_ptx_lacks_value(const struct hed_ptx_operand *o, enum hed_ptx_type t);
const char *hed_ptx_lacks_place(const struct hed_ptx_operand *o);

/* prmt with a mode: the byte that position k takes if the selector is n. */
unsigned hed_ptx_prmt_byte(enum hed_ptx_mode mode, unsigned k, unsigned n);

/* HED_ENOTSUP if a thread of this function needs more local memory than a GPU gives it. */
#define HED_PTX_LOCAL_MAX (UINT64_C(512) << 10)
int hed_ptx_check_local(const struct hed_ptx_func *f, struct hed_why *why);

/* Writes what a user reads: REASON: 'INSTRUCTION' (function F, line N), or the reason alone if i is
 * NULL. */
void hed_ptx_word_refusal(struct hed_why *why, const struct hed_ptx_func *f,
                          const struct hed_ptx_inst *i, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

/* Element i of an operand that is a register, a vector register or a list in braces; a sink if the
 * list has no such element. */
struct hed_ptx_operand hed_ptx_nth_element(const struct hed_ptx_operand *o, unsigned i);

static inline bool
hed_ptx_is_shared_space(unsigned space)
{
    return space == HED_PTX_SPACE_SHARED || space == HED_PTX_SPACE_SHARED_CTA ||
           space == HED_PTX_SPACE_SHARED_CLUSTER;
}

/* The space of the only, or the first, memory operand. */
static inline enum hed_ptx_space
hed_ptx_first_space(const struct hed_ptx_form *f)
{
    return f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;
}

static inline bool
hed_ptx_is_int(enum hed_ptx_type t)
{
    const uint8_t kind = hed_ptx_types[t].kind;

    return kind == HED_PTX_KIND_S || kind == HED_PTX_KIND_U || kind == HED_PTX_KIND_B;
}

static inline bool
hed_ptx_is_half_pair(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16X2 || t == HED_PTX_TYPE_BF16X2;
}
