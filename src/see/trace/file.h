/* The trace file being written, one write per block. Not thread-safe: the writer's file lock guards
 * it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_trace_options;
struct hed_why;

struct hed_trace_file {
    int fd;
    int err;         /* sticky: after a failed write nothing more is written */
    uint64_t number; /* of the next block */
    uint64_t device; /* with inode: which file fd must still be */
    uint64_t inode;
    char path[4096];
};

/* Makes a new file as hed_trace_writer_open says, and writes its head: INFO and SCHEMA blocks. */
int hed_trace_file_create(struct hed_trace_file *f, const struct hed_trace_options *o,
                          struct hed_why *why);

/* Appends a block. A short or failed write sets err and is logged once. */
void hed_trace_file_block(struct hed_trace_file *f, uint32_t type, uint64_t thread, const void *p,
                          size_t n);

void hed_trace_file_close(struct hed_trace_file *f);
