/* The contestant that is plain C: it works in the job's buffers. */
#include <stdio.h>
#include <stdlib.h>

#include "contestant.h"

static void (*plain_function)(const struct job *job);

void
contestant_open(const struct bench_case *c, const struct job *job)
{
    (void)job;
    plain_function = c->plain;
    if (!plain_function) {
        fprintf(stderr, "%s has no plain C\n", c->name);
        exit(1);
    }
}

void
contestant_run(const struct job *job, int count)
{
    for (int i = 0; i < count; i++) {
        plain_function(job);
        __asm__ volatile("" ::: "memory");
    }
}

void
contestant_fetch(struct job *job)
{
    (void)job;
}
