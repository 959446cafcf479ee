/* Lines of counts and times, found by name and sorted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/trace/stats.h"
#include "cli/trace/util.h"

enum hed_table_sort {
    HED_SORT_TOTAL,
    HED_SORT_COUNT,
    HED_SORT_MEAN,
    HED_SORT_P99,
    HED_SORT_ERRORS,
    HED_SORT_NAME,
};

struct hed_table {
    struct hed_call_stats stats;
    struct hed_cli_map lines; /* hash of name and thread -> line + 1 */
};

/* The line of a name and thread (or NULL) + 1, created if necessary; 0 if there is no memory. */
uint32_t hed_table_line(struct hed_table *t, const char *name, const char *thread);

/* One of "total", "count", "mean", "p99", "errors", "name"; false for other words. */
bool hed_table_sort_word(const char *word, enum hed_table_sort *sort);

/* Computes the percentiles and sorts, the largest first. Afterwards lines cannot be looked up. */
void hed_table_finish(struct hed_table *t, enum hed_table_sort sort);

void hed_table_fini(struct hed_table *t);
