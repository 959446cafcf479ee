/* Lines that are found by name. */
#include "cli/trace/table.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
hash_names(const char *a, const char *b)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *a; a++)
        h = (h ^ (unsigned char)*a) * UINT64_C(0x100000001b3);
    for (h *= UINT64_C(0x100000001b3); b && *b; b++)
        h = (h ^ (unsigned char)*b) * UINT64_C(0x100000001b3);
    return h;
}

uint32_t
hed_table_line(struct hed_table *t, const char *name, const char *thread)
{
    const uint64_t key = hash_names(name, thread);
    uint32_t line = hed_cli_map_get(&t->lines, key);

    if (!line) {
        const size_t n = hed_call_stats_line(&t->stats, name, thread);

        if (n == SIZE_MAX || !hed_cli_map_put(&t->lines, key, (uint32_t)n + 1))
            return 0;
        line = (uint32_t)n + 1;
    }
    return line;
}

bool
hed_table_sort_word(const char *word, enum hed_table_sort *sort)
{
    static const char *const words[] = {"total", "count", "mean", "p99", "errors", "name"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0) {
            *sort = (enum hed_table_sort)i;
            return true;
        }
    }
    return false;
}

static int
compare_lines(const void *a, const void *b, void *context)
{
    const struct hed_call_stats_line *x = a;
    const struct hed_call_stats_line *y = b;
    double order = 0; /* the larger first */

    switch (*(const enum hed_table_sort *)context) {
    case HED_SORT_TOTAL:
        order = (double)hed_call_stats_total(y) - (double)hed_call_stats_total(x);
        break;
    case HED_SORT_COUNT:
        order = (double)hed_call_stats_calls(y) - (double)hed_call_stats_calls(x);
        break;
    case HED_SORT_MEAN:
        order = hed_call_stats_mean(y) - hed_call_stats_mean(x);
        break;
    case HED_SORT_P99:
        order = (double)y->p99 - (double)x->p99;
        break;
    case HED_SORT_ERRORS:
        order = (double)y->errors - (double)x->errors;
        break;
    case HED_SORT_NAME:
        break;
    }
    if (order != 0)
        return order < 0 ? -1 : 1;

    const int names = strcmp(x->name, y->name);

    return names || !x->thread ? names : strcmp(x->thread, y->thread);
}

void
hed_table_finish(struct hed_table *t, enum hed_table_sort sort)
{
    hed_call_stats_finish(&t->stats);
    if (t->stats.count)
        qsort_r(t->stats.lines, t->stats.count, sizeof(t->stats.lines[0]), compare_lines, &sort);
}

void
hed_table_fini(struct hed_table *t)
{
    hed_call_stats_fini(&t->stats);
    hed_cli_map_fini(&t->lines);
}
