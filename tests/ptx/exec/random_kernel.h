/* Random kernels, as PTX text made from a seed.
 *
 *     struct random_kernel k;
 *
 *     random_kernel_make(&k, seed);
 *     char *text = random_kernel_text(&k);    caller frees
 *
 * A kernel takes (.u64 in, .u64 out, .u32 n). It reads anywhere in RANDOM_IN bytes on both sides of
 * `in`, and each thread writes only bytes of `out` that are its own, or a constant that all threads
 * write alike. So memory does not depend on the order of threads. Loops always end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RANDOM_IN 8192u     /* bytes on each side of `in` */
#define RANDOM_THREADS 512u /* of a grid, at most */
#define RANDOM_SLOTS 40u    /* words of each thread that lie beside its neighbours' words */
#define RANDOM_OWN 256u     /* bytes of each thread that lie together */
#define RANDOM_FLAGS (RANDOM_THREADS * (RANDOM_SLOTS * 16u + RANDOM_OWN))
#define RANDOM_OUT (RANDOM_FLAGS + 1024u)

#define RANDOM_LINES 4000u
#define RANDOM_PIECES 3000u

/* Lines first..last can be left out together, and the kernel is still a good one. */
struct random_piece {
    unsigned first, last;
};

struct random_kernel {
    uint64_t state; /* of the generator */
    char *lines[RANDOM_LINES];
    bool dropped[RANDOM_LINES];
    unsigned nlines;
    struct random_piece pieces[RANDOM_PIECES];
    unsigned npieces;
    bool meets;    /* threads wait for each other */
    bool linear;   /* mostly sums and products of positions and constants, and what widens them */
    bool forms;    /* has instructions of all families, calls and memory of each thread's own */
    bool shuffles; /* has operations among the lanes of a warp */
    bool shares;   /* mostly what lanes share: bits, distances, ways that meet; not each 4th seed */
    unsigned mark; /* a bit that many numbers have or do not have */
    unsigned turn; /* how the cells of random_share.c lie */
    bool sums;     /* has many sums of products */
    unsigned labels, budget;
    /* While it is made: the loops and ifs around the place. */
    unsigned depth;    /* of loops */
    unsigned ends[16]; /* labels behind the constructs around */
    unsigned nends;
    unsigned latches[4]; /* labels of the loops' latches */
    bool may_meet;       /* all threads of a block come here together */
};

void random_kernel_make(struct random_kernel *k, uint64_t seed);
void random_kernel_free(struct random_kernel *k);
/* The text without the lines that were dropped. */
char *random_kernel_text(const struct random_kernel *k);

/* How a kernel is launched: always in the same way. */
struct random_shape {
    unsigned blocks, threads, width; /* of a block in x; 0: all threads */
    unsigned n;
};
void random_shape(const struct random_kernel *k, uint64_t seed, struct random_shape *out);
/* Memory around `in`: 2 * RANDOM_IN bytes. */
void random_fill(unsigned char *in);
/* A number below n. */
unsigned random_below(uint64_t *state, unsigned n);
