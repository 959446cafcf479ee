/* Makes the data of a case. Every process makes the same numbers. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static const size_t element_size[] = {
    [WORDS] = 4, [BYTES] = 1, [FLOATS] = 4, [DOUBLES] = 8, [HALVES] = 2};

uint32_t
random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

float
random_float(float low, float high)
{
    return low + (high - low) * (float)(random_word() >> 8) * (1.0f / 16777216.0f);
}

void *
job_buffer(struct job *job, enum element element, size_t count)
{
    const size_t bytes = count * element_size[element], room = (bytes + 127) / 64 * 64;
    struct buffer *b = &job->buffers[job->buffer_count];

    if (job->buffer_count == MAX_BUFFERS || job->argument_count == MAX_ARGUMENTS ||
        !(b->data = aligned_alloc(64, room))) {
        fprintf(stderr, "no room for a buffer of %zu bytes\n", bytes);
        exit(1);
    }
    memset(b->data, 0, room);
    b->bytes = bytes;
    b->element = element;
    job->arguments[job->argument_count++].buffer = job->buffer_count++;
    return b->data;
}

void *
job_output(struct job *job, enum element element, size_t count)
{
    void *data = job_buffer(job, element, count);

    job->buffers[job->buffer_count - 1].is_output = true;
    return data;
}

float *
job_floats(struct job *job, size_t count, float low, float high)
{
    float *p = job_buffer(job, FLOATS, count);

    for (size_t i = 0; i < count; i++)
        p[i] = random_float(low, high);
    return p;
}

uint32_t *
job_words(struct job *job, size_t count, uint32_t below)
{
    uint32_t *p = job_buffer(job, WORDS, count);

    for (size_t i = 0; i < count; i++)
        p[i] = below ? random_word() % below : random_word();
    return p;
}

uint8_t *
job_bytes(struct job *job, size_t count, const char *letters)
{
    uint8_t *p = job_buffer(job, BYTES, count);
    const size_t n = strlen(letters);

    for (size_t i = 0; i < count; i++)
        p[i] = (uint8_t)letters[random_word() % n];
    return p;
}

void
job_int(struct job *job, int value)
{
    job->arguments[job->argument_count++] = (struct argument){.buffer = -1, .i = value};
}

void
job_float(struct job *job, float value)
{
    job->arguments[job->argument_count++] = (struct argument){.buffer = -1, .f = value};
}

void
job_shape(struct job *job, int x, int y, int block_x, int block_y)
{
    job->grid[0] = (unsigned)(x / block_x);
    job->grid[1] = (unsigned)(y / block_y);
    job->grid[2] = 1;
    job->block[0] = (unsigned)block_x;
    job->block[1] = (unsigned)block_y;
    job->block[2] = 1;
}

void
job_free(struct job *job)
{
    for (int i = 0; i < job->buffer_count; i++)
        free(job->buffers[i].data);
}
