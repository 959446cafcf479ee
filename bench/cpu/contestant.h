/* A contestant runs a case's kernel by its own means. Each program has one: heddle.c runs it
 * through the CUDA driver API, pocl.c through OpenCL, plain.c calls the C function. */
#pragma once

#include "cases.h"

/* Starts the device, makes buffers with the job's data and builds the kernel, all of which the
 * first launch waits for. These functions end the process with a message when something fails. */
void contestant_open(const struct bench_case *c, const struct job *job);
/* Runs the kernel count times and waits for the last. */
void contestant_run(const struct job *job, int count);
/* Copies the outputs to the job's buffers. */
void contestant_fetch(struct job *job);
