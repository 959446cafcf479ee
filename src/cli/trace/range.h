/* The ranges that a program's threads have declared, as a tree: a range inside another one is its
 * child, and equal ones share a node.
 *
 *     step > forward > layer 1
 *     step > backward
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/trace/util.h"

struct hed_buf;
struct hed_trace_record;

#define HED_RANGE_NODES_MAX (1u << 20) /* different ranges; more are told as the ones around them */
#define HED_RANGE_DEPTH_MAX 256        /* the same for ranges that lie deeper */

struct hed_range_node {
    uint32_t parent;  /* 0: none */
    uint32_t depth;   /* from 1 */
    const char *text; /* in the trace */
    uint32_t size;    /* bytes of the text */
};

struct hed_range_thread {
    uint32_t node; /* the range that the thread is in; 0: none */
    uint64_t over; /* open ranges that have no node of their own */
};

struct hed_ranges {
    struct hed_range_node *nodes; /* owned; node 0 is unused */
    size_t count;
    struct hed_cli_map children;   /* hash of parent and text -> node */
    struct hed_cli_map threads;    /* thread -> index in `open` + 1 */
    struct hed_range_thread *open; /* owned */
};

/* Takes the beginning or the end of a range; other records are left alone. The records of a thread
 * must come in order. False if there is no memory. */
bool hed_ranges_follow(struct hed_ranges *l, const struct hed_trace_record *r);

/* The range that the thread is in now; 0: none. */
uint32_t hed_ranges_now(const struct hed_ranges *l, uint64_t thread);

/* Appends the texts from the outermost range to this one by `add`, each followed by `after`. */
void hed_ranges_add_path(const struct hed_ranges *l, uint32_t node, const char *after,
                         void (*add)(struct hed_buf *b, const char *text, size_t n),
                         struct hed_buf *b);

void hed_ranges_fini(struct hed_ranges *l);
