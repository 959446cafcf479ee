/* What grows with a trace: arrays, maps from numbers to numbers, the contexts of GPUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_trace_activity;

/* An array with room for one more than `count`; it doubles at the powers of two. NULL without
 * memory: the array stays as it is. */
void *hed_cli_widened(void *array, size_t count, size_t size);

/* A hash of bytes behind another hash, for keys of maps. */
uint64_t hed_cli_hash(uint64_t h, const void *bytes, size_t n);

/* ---- a map from numbers to numbers ----------------------------------------------------------- */

struct hed_cli_map {
    uint64_t *keys;   /* owned */
    uint32_t *values; /* owned; 0: free */
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* The value of a key, or 0. */
uint32_t hed_cli_map_get(const struct hed_cli_map *m, uint64_t key);

/* Adds a key that is not there, with a value that is not 0. False if there is no memory. */
bool hed_cli_map_put(struct hed_cli_map *m, uint64_t key, uint32_t value);

/* The value of a key in a map that numbers its keys from 1, in the order in which they are first
 * asked for; 0 without memory. */
uint32_t hed_cli_map_number(struct hed_cli_map *m, uint64_t key);

/* The index of a key in an array that grows with its map; SIZE_MAX without memory. *fresh: the
 * entry is new and cleared. */
size_t hed_cli_map_index(struct hed_cli_map *map, uint64_t key, void **array, size_t size,
                         bool *fresh);

void hed_cli_map_fini(struct hed_cli_map *m);

/* ---- contexts -------------------------------------------------------------------------------- */

/* The contexts of a trace's GPUs, by number. */
struct hed_cli_contexts {
    struct hed_cli_map numbers; /* device and context -> number */
    struct hed_cli_map devices; /* device -> the number of its first context */
};

/* The number of an activity's context, from 1; 0 without memory. *first: it is the first of its
 * device. Most programs have no other, so that one need not be named. */
uint32_t hed_cli_context(struct hed_cli_contexts *c, const struct hed_trace_activity *a,
                         bool *first);

void hed_cli_contexts_fini(struct hed_cli_contexts *c);
