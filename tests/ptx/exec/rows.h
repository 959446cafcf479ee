/* Rows: single PTX instructions, their inputs, and a PTX module that runs them all.
 *
 * A row is text such as "add.rz.f32 $d, $a, $b;" and a signature such as "ww:w": the registers of
 * $a $b $c, a colon, those of $d and $e. Letters: p predicate, h w d of 16, 32 and 64 bits. All
 * registers are untyped. Inputs come in sets of ROWS_INPUTS triples, edge values against each other
 * and pseudo-random ones; an input narrower than 64 bits takes the low bits of its word.
 *
 * The module has one kernel for up to ROWS_A_KERNEL rows of one set: `k<n>(in, out)` computes
 * out[row * ROWS_INPUTS + thread] from in[3 * thread ..], with ROWS_INPUTS threads in blocks of
 * ROWS_BLOCK. The result is $d, combined with $e shifted left by 32 if there is one.
 *
 * Nothing here needs heddle: the same rows run on any libcuda (rows_cuda.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_INPUTS 1024u
#define ROWS_BLOCK 128u
#define ROWS_A_KERNEL 24u

enum rows_set {
    ROWS_I16,
    ROWS_I32,
    ROWS_I64,
    ROWS_F16,
    ROWS_BF16,
    ROWS_F16X2,
    ROWS_BF16X2,
    ROWS_F32,
    ROWS_TRIG, /* f32 within 100 pi, and values without a sine */
    ROWS_F64,
    ROWS_F32X2,
    ROWS_SETS
};

/* How the error of an approximation is measured; exact rows have kind 0. */
enum rows_kind { ROWS_EXACT, ROWS_ULP, ROWS_ABS, ROWS_REL, ROWS_HALF, ROWS_HIGH };

struct row {
    const char *text;
    const char *signature;
    uint8_t set;                             /* enum rows_set */
    uint8_t kind;                            /* enum rows_kind */
    int limit;                               /* ulps, or the exponent of a power of two */
    double (*reference)(double a, double b); /* of approximations */
    bool on_new; /* needs a newer architecture than sm_90; the result is 0 */
};

struct rows_kernel {
    char name[16];
    unsigned rows[ROWS_A_KERNEL];
    unsigned count;
    uint8_t set; /* enum rows_set */
};

extern const struct row rows[];
extern const unsigned rows_count;

/* 0 for the inputs of the golden data; any other seed gives random inputs. */
extern uint64_t rows_seed;

/* The inputs of a set: 3 * ROWS_INPUTS words, the same on every machine. */
void rows_inputs(enum rows_set set, uint64_t *in);

/* The kernels, to be freed by the caller; with on_new, those of the rows that need a newer
 * architecture. */
struct rows_kernel *rows_kernels(bool on_new, unsigned *count);

/* The module's text, to be freed by the caller. */
char *rows_module(const struct rows_kernel *kernels, unsigned count, bool on_new);

/* Is `got` near enough to `want`, both of row r? In approximations, and only there, all NaNs are
 * equal. */
bool rows_near(const struct row *r, uint64_t got, uint64_t want);

/* FNV-1a over a row's ROWS_INPUTS results. */
uint64_t rows_hash(const uint64_t *out);

/* The reference of an approximation, from libm, in the row's format. */
uint64_t rows_reference(const struct row *r, const uint64_t *in);
