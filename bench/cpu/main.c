/* Runs one case with one contestant and prints what it took as a line of JSON.
 *
 *     PROGRAM list                              the cases, one per line
 *     PROGRAM CASE SECONDS [write|check FILE]
 *     PROGRAM CASE SECONDS hot                  for kernels that are compiled while they run
 *
 * The first launch works on fresh data; its outputs are written to FILE or compared with it. Then
 * as many launches are timed as take SECONDS of CPU time or more; 0 skips that.
 *
 * With `hot`, launches follow each other for SECONDS, and the time is noted at which they had
 * become as fast as they are in the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "busiest.h"
#include "contestant.h"

static const struct bench_case *const tables[] = {memory_cases, reduce_cases,  dense_cases,
                                                  rows_cases,   grid_cases,    math_cases,
                                                  sort_cases,   integer_cases, sparse_cases};

enum { TABLES = sizeof tables / sizeof *tables, MAX_LAUNCHES = 1 << 30 };

static double
seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const struct bench_case *
find_case(const char *name)
{
    for (int i = 0; i < TABLES; i++)
        for (const struct bench_case *c = tables[i]; c->name; c++)
            if (strcmp(c->name, name) == 0)
                return c;
    fprintf(stderr, "no case is called %s\n", name);
    exit(1);
}

static void
list_cases(void)
{
    for (int i = 0; i < TABLES; i++)
        for (const struct bench_case *c = tables[i]; c->name; c++)
            printf("%s %s %s %g\n", c->name, c->file, c->kernel, c->tolerance);
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct difference {
    double worst; /* the largest error, relative to its element or the mean size */
    size_t wrong; /* elements over the tolerance */
};

static double
element_value(const void *data, enum element element, size_t i)
{
    switch (element) {
    case WORDS:
        return ((const uint32_t *)data)[i];
    case BYTES:
        return ((const uint8_t *)data)[i];
    case FLOATS:
        return (double)((const float *)data)[i];
    case DOUBLES:
        return ((const double *)data)[i];
    case HALVES:
        return (double)((const _Float16 *)data)[i];
    }
    return NAN;
}

static void
compare_buffer(struct difference *d, const struct buffer *b, const void *reference,
               double tolerance)
{
    static const size_t size[] = {4, 1, 4, 8, 2};
    const size_t count = b->bytes / size[b->element];
    double mean = 0;

    for (size_t i = 0; i < count; i++)
        mean += fabs(element_value(reference, b->element, i)) / (double)count;
    for (size_t i = 0; i < count; i++) {
        const double want = element_value(reference, b->element, i);
        const double got = element_value(b->data, b->element, i);
        const double error = got == want ? 0 : fabs(got - want) / fmax(fabs(want), mean);

        if (!(error <= tolerance))
            d->wrong++;
        if (!(error <= d->worst))
            d->worst = error;
    }
}

static struct difference
write_or_check(const struct job *job, bool check, const char *path, double tolerance)
{
    struct difference d = {0, 0};
    FILE *f = fopen(path, check ? "rb" : "wb");

    for (int i = 0; f && i < job->buffer_count; i++) {
        const struct buffer *b = &job->buffers[i];

        if (!b->is_output)
            continue;

        void *reference = check ? malloc(b->bytes) : NULL;

        if (check ? !reference || fread(reference, 1, b->bytes, f) != b->bytes
                  : fwrite(b->data, 1, b->bytes, f) != b->bytes) {
            fprintf(stderr, "%s is too short\n", path);
            exit(1);
        }
        if (check)
            compare_buffer(&d, b, reference, tolerance);
        free(reference);
    }
    if (!f || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
    return d;
}

/* ---- timing ---------------------------------------------------------------------------------- */

struct times {
    double cpu, wall; /* seconds of all launches */
    double busiest;   /* of cpu, what the busiest thread took */
    int launches;
};

static struct times
time_launches(const struct job *job, double at_least)
{
    struct times t = {.launches = 1};

    for (;;) {
        const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);

        busiest_begin();
        contestant_run(job, t.launches);
        t.busiest = busiest_seconds();
        t.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        t.wall = seconds(CLOCK_MONOTONIC) - wall;
        if (t.cpu >= at_least || t.launches > MAX_LAUNCHES / 16)
            return t;

        /* Grow towards the goal, but do not trust the first short measurements. */
        const double factor = t.cpu > 0 ? 1.2 * at_least / t.cpu : 16;

        t.launches = (int)ceil(t.launches * fmin(fmax(factor, 1.2), 16));
    }
}

/* ---- getting hot ----------------------------------------------------------------------------- */

enum { MAX_SAMPLES = 1 << 20, NEAR = 5 };

struct sample {
    float took;       /* CPU time, also of a compiler in the background */
    double cpu, wall; /* at its end, since the program began to start the device */
};

static int
compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* The median of how long `count` samples took. */
static float
median_of(const struct sample *s, int count)
{
    float *took = malloc((size_t)count * sizeof *took);
    float middle = 0;

    if (took) {
        for (int i = 0; i < count; i++)
            took[i] = s[i].took;
        qsort(took, (size_t)count, sizeof *took, compare_floats);
        middle = took[count / 2];
    }
    free(took);
    return middle;
}

/* The sample from which on launches take at most twice what they take in the end. */
static struct sample
find_hot(const struct job *job, double limit, double cpu, double wall)
{
    struct sample *s = malloc(MAX_SAMPLES * sizeof *s);
    struct sample hot = {0};
    int n = 0;

    if (!s)
        return hot;
    do {
        const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);

        contestant_run(job, 1);

        const double end = seconds(CLOCK_PROCESS_CPUTIME_ID);

        s[n++] = (struct sample){(float)(end - start), end - cpu, seconds(CLOCK_MONOTONIC) - wall};
    } while (n < MAX_SAMPLES && s[n - 1].wall < limit);

    const float end = n > 4 * NEAR ? median_of(s + n - n / 4, n / 4) : s[n - 1].took;

    for (int i = 0; i < n; i++) {
        hot = s[i];
        if (i + NEAR > n || median_of(s + i, NEAR) <= 2 * end)
            break;
    }
    free(s);
    return hot;
}

static int
print_usage(const char *name)
{
    fprintf(stderr, "usage: %s CASE SECONDS [write|check FILE | hot]\n", name);
    return 1;
}

/* Everything that a run has measured. */
struct figures {
    double first_cpu, first_wall; /* seconds */
    struct times times;
    struct difference difference;
    struct sample hot;
};

static void
print_figures(const struct bench_case *c, const struct job *job, const struct figures *f)
{
    const struct times *t = &f->times;
    const double us = t->launches ? 1e6 / t->launches : 0;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("{\"case\": \"%s\", \"first_cpu_ms\": %.3f, \"first_wall_ms\": %.3f, ", c->name,
           f->first_cpu * 1e3, f->first_wall * 1e3);
    printf("\"launches\": %d, \"cpu_us\": %.4f, \"wall_us\": %.4f, \"busiest_us\": %.4f, ",
           t->launches, t->cpu * us, t->wall * us, t->busiest * us);
    printf("\"flops\": %.0f, \"bytes\": %.0f, \"error\": %g, \"wrong\": %zu, ", job->flops,
           job->bytes, isfinite(f->difference.worst) ? f->difference.worst : 1e300,
           f->difference.wrong);
    printf("\"rss_mib\": %.1f, \"hot_cpu_ms\": %.1f, \"hot_wall_ms\": %.1f}\n",
           (double)usage.ru_maxrss / 1024, f->hot.cpu * 1e3, f->hot.wall * 1e3);
}

int
main(int argc, char **argv)
{
    struct job job = {0};
    struct figures f = {0};

    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list_cases(), 0;
    if (argc < 3)
        return print_usage(argv[0]);

    const struct bench_case *c = find_case(argv[1]);
    const double at_least = strtod(argv[2], NULL);

    c->prepare(&job);

    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);

    contestant_open(c, &job);
    contestant_run(&job, 1);
    f.first_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    f.first_wall = seconds(CLOCK_MONOTONIC) - wall;
    if (argc > 4) {
        contestant_fetch(&job);
        f.difference = write_or_check(&job, strcmp(argv[3], "check") == 0, argv[4], c->tolerance);
    }
    if (argc == 4 && strcmp(argv[3], "hot") == 0)
        f.hot = find_hot(&job, at_least, cpu, wall);
    else if (at_least > 0)
        f.times = time_launches(&job, at_least);
    print_figures(c, &job, &f);
    job_free(&job);
    return 0;
}
