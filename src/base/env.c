/* The environment of the program to run. See env.h. */
#include "base/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define VALUE_MAX (2u * 1024 * 1024) /* bytes; more than execve takes anyway */

static char *
find_env(char *const *vars, const char *name)
{
    const size_t n = strlen(name);

    for (; *vars; vars++) {
        if (strncmp(*vars, name, n) == 0 && (*vars)[n] == '=')
            return *vars;
    }
    return NULL;
}

void
hed_env_init(struct hed_env *e, char *const *from)
{
    *e = (struct hed_env){0};
    while (from[e->count])
        e->count++;
    e->vars = calloc(e->count + 1, sizeof *e->vars);
    if (!e->vars) {
        *e = (struct hed_env){.failed = true};
        return;
    }
    for (size_t i = 0; i < e->count; i++) {
        e->vars[i] = strdup(from[i]);
        if (!e->vars[i]) {
            e->count = i;
            e->failed = true;
            return;
        }
    }
}

void
hed_env_fini(struct hed_env *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->vars[i]);
    free(e->vars);
    *e = (struct hed_env){0};
}

const char *
hed_env_get(const struct hed_env *e, const char *name)
{
    const char *var = e->vars ? find_env(e->vars, name) : NULL;

    return var ? var + strlen(name) + 1 : NULL;
}

/* Takes ownership of var. */
static void
put_variable(struct hed_env *e, const char *name, char *var)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < e->count; i++) {
        if (strncmp(e->vars[i], name, n) == 0 && e->vars[i][n] == '=') {
            free(e->vars[i]);
            e->vars[i] = var;
            return;
        }
    }

    char **vars = realloc(e->vars, (e->count + 2) * sizeof *vars);

    if (!vars) {
        free(var);
        e->failed = true;
        return;
    }
    e->vars = vars;
    e->vars[e->count++] = var;
    e->vars[e->count] = NULL;
}

void
hed_env_set(struct hed_env *e, const char *name, const char *value)
{
    const size_t size = strlen(name) + strlen(value) + 2;
    char *var = e->failed ? NULL : malloc(size);

    if (!var) {
        e->failed = true;
        return;
    }
    snprintf(var, size, "%s=%s", name, value);
    put_variable(e, name, var);
}

void
hed_env_set_setting(struct hed_env *e, const char *key, const char *value)
{
    char name[64];
    size_t n = (size_t)snprintf(name, sizeof name, "HEDDLE_%s", key);

    for (size_t i = 0; i < n && name[i]; i++)
        name[i] = (char)toupper((unsigned char)name[i]);
    hed_env_set(e, name, value);
}

/* Appends the entries of `old` that differ from `item`. first: `list` has no entry yet. An empty
 * entry of LD_LIBRARY_PATH means the current folder, so empty entries are kept; an empty list has
 * none. */
static void
add_others(struct hed_buf *list, const char *old, const char *item, const char *separators,
           bool first)
{
    for (const char *p = old; p && old[0];) {
        const size_t n = strcspn(p, separators);

        if (n != strlen(item) || memcmp(p, item, n) != 0) {
            if (!first)
                hed_buf_add(list, separators, 1);
            hed_buf_add(list, p, n);
            first = false;
        }
        p = p[n] ? p + n + 1 : NULL;
    }
}

void
hed_env_prepend(struct hed_env *e, const char *name, const char *item, const char *separators)
{
    struct hed_buf list;

    hed_buf_init(&list, VALUE_MAX);
    hed_buf_add(&list, item, strlen(item));
    add_others(&list, hed_env_get(e, name), item, separators, false);
    if (list.err)
        e->failed = true;
    else
        hed_env_set(e, name, hed_buf_cstr(&list));
    hed_buf_fini(&list);
}

void
hed_env_drop(struct hed_env *e, const char *name, const char *item, const char *separators)
{
    const char *old = hed_env_get(e, name);
    struct hed_buf list;

    if (!old || !strstr(old, item))
        return;
    hed_buf_init(&list, VALUE_MAX);
    add_others(&list, old, item, separators, true);
    if (list.err)
        e->failed = true;
    else if (list.size == 0)
        hed_env_unset(e, name);
    else
        hed_env_set(e, name, hed_buf_cstr(&list));
    hed_buf_fini(&list);
}

void
hed_env_unset(struct hed_env *e, const char *name)
{
    char *var = e->vars ? find_env(e->vars, name) : NULL;

    if (!var)
        return;
    for (size_t i = 0; i < e->count; i++) {
        if (e->vars[i] == var) {
            /* Including the NULL at the end. */
            memmove(e->vars + i, e->vars + i + 1, (e->count - i) * sizeof *e->vars);
            e->count--;
            break;
        }
    }
    free(var);
}

/* In single quotes nothing is special but the single quote. */
static void
print_quoted(const char *s, FILE *out)
{
    fputc('\'', out);
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", out);
        else
            fputc(*s, out);
    }
    fputc('\'', out);
}

void
hed_env_print_changes(const struct hed_env *e, char *const *old, FILE *out)
{
    for (size_t i = 0; i < e->count; i++) {
        const char *var = e->vars[i];
        const size_t n = strcspn(var, "=");
        char name[128];

        if (n >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)n, var);

        const char *before = find_env(old, name);

        if (before && strcmp(before, var) == 0)
            continue;
        fprintf(out, "export %s=", name);
        print_quoted(var + n + 1, out);
        fputc('\n', out);
    }
    for (; *old; old++) {
        char name[128];

        if ((size_t)snprintf(name, sizeof name, "%.*s", (int)strcspn(*old, "="), *old) <
                sizeof name &&
            !find_env(e->vars, name))
            fprintf(out, "unset %s\n", name);
    }
}
