/* The benchmark's cases: what a kernel works on, the same work in plain C, and how near the results
 * must be. Every contestant (CUDA, OpenCL, plain C) is a program that is linked with them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_BUFFERS = 8, MAX_ARGUMENTS = 12 };

enum element { WORDS, BYTES, FLOATS, DOUBLES, HALVES }; /* WORDS, BYTES: compared exactly */

struct buffer {
    void *data; /* ours, aligned to 64 */
    size_t bytes;
    enum element element;
    bool is_output; /* is compared */
};

/* An argument of the kernel: a buffer, or a number of four bytes. */
struct argument {
    int buffer; /* -1: a number */
    union {
        int i;
        float f;
    };
};

/* What one launch works on. */
struct job {
    struct buffer buffers[MAX_BUFFERS];
    struct argument arguments[MAX_ARGUMENTS];
    int buffer_count, argument_count;
    unsigned grid[3], block[3];
    double flops, bytes; /* of one launch, where a rate means something; else 0 */
};

struct bench_case {
    const char *name;
    const char *file;   /* kernels/FILE.cl */
    const char *kernel; /* its name there */
    void (*prepare)(struct job *job);
    void (*plain)(const struct job *job); /* may be NULL */
    /* The largest error allowed: relative to the element or, if it is larger, to the mean size of
     * the elements. 0 for results that must be the same bits. */
    double tolerance;
};

/* The tables; each ends with a case that has no name. */
extern const struct bench_case memory_cases[], reduce_cases[], dense_cases[], rows_cases[],
    grid_cases[], math_cases[], integer_cases[], sort_cases[], sparse_cases[];

/* ---- making jobs (job.c) --------------------------------------------------------------------- */

/* Adds a buffer of zeros and an argument for it. */
void *job_buffer(struct job *job, enum element element, size_t count);
void *job_output(struct job *job, enum element element, size_t count);
/* The same, filled with random numbers of [low, high). */
float *job_floats(struct job *job, size_t count, float low, float high);
uint32_t *job_words(struct job *job, size_t count, uint32_t below);
uint8_t *job_bytes(struct job *job, size_t count, const char *letters);
void job_int(struct job *job, int value);
void job_float(struct job *job, float value);
/* Threads in x and y, and the block's size; they must divide. */
void job_shape(struct job *job, int x, int y, int block_x, int block_y);
void job_free(struct job *job);

uint32_t random_word(void);
float random_float(float low, float high);

/* ---- reading them (plain C) ------------------------------------------------------------------ */

static inline void *
data_of(const struct job *job, int argument)
{
    return job->buffers[job->arguments[argument].buffer].data;
}

static inline int
int_of(const struct job *job, int argument)
{
    return job->arguments[argument].i;
}
