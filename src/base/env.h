/* A copy of an environment that is changed before it becomes a program's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hed_env {
    char **vars;  /* "NAME=value", NULL at the end; owned */
    size_t count; /* without the NULL */
    bool failed;  /* sticky: out of memory */
};

/* Copies `from` ("NAME=value" strings, NULL at the end). */
void hed_env_init(struct hed_env *e, char *const *from);
void hed_env_fini(struct hed_env *e);

/* The value, or NULL. Valid until that variable is set again. */
const char *hed_env_get(const struct hed_env *e, const char *name);

void hed_env_set(struct hed_env *e, const char *name, const char *value);

/* The variable of a setting: trace_data is HEDDLE_TRACE_DATA. */
void hed_env_set_setting(struct hed_env *e, const char *key, const char *value);

/* Puts `item` in front of a list whose entries are separated by any of `separators`, of which the
 * first is used. Entries that are equal to it are dropped, so that a list does not grow when heddle
 * runs heddle.
 */
void hed_env_prepend(struct hed_env *e, const char *name, const char *item, const char *separators);

/* Removes an item from such a list. A list that becomes empty is unset. */
void hed_env_drop(struct hed_env *e, const char *name, const char *item, const char *separators);

void hed_env_unset(struct hed_env *e, const char *name);

/* Prints what differs from `old`, as lines that a POSIX shell can read. */
void hed_env_print_changes(const struct hed_env *e, char *const *old, FILE *out);
