/* Reads the traces that a conformance program has made, with heddle's own reader. */
#pragma once

#include <dirent.h>

#include "base/buf.h"
#include "base/err.h"
#include "see/trace/print.h"
#include "see/trace/read.h"

#include "conf.h"

/* Counts the files of the folder that end in .hed. `path`, if given, receives the last one's
 * path. */
static inline int
conf_trace_files(char *path, size_t size)
{
    char folder[4096];
    DIR *d = opendir(conf_path(folder, sizeof folder, ""));
    int n = 0;

    CHECK(d, "no scratch folder");
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        const size_t length = strlen(e->d_name);

        if (length < 4 || strcmp(e->d_name + length - 4, ".hed") != 0)
            continue;
        n++;
        if (path)
            conf_path(path, size, e->d_name);
    }
    closedir(d);
    return n;
}

static inline struct hed_trace *
conf_trace_open(const char *path)
{
    struct hed_trace *t = NULL;
    struct hed_why why = {""};

    CHECK(hed_trace_open(path, &t, &why) == 0, "%s: %s", path, why.text);
    CHECK(hed_trace_state(t)->blocks_bad == 0, "%s is damaged", path);
    return t;
}

/* Counts the records of a kind; of calls, all calls with a name (NULL: any). */
static inline unsigned
conf_trace_count(const struct hed_trace *t, unsigned kind, const char *text)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;
    unsigned n = 0;

    while (hed_trace_next(&c, &r)) {
        struct hed_buf b;

        if (r.kind != kind)
            continue;
        hed_buf_init(&b, 4096);
        if (kind == HED_TRACE_CALL)
            hed_trace_print_name(t, &r, &b);
        else
            hed_buf_add(&b, r.body, r.body_size);
        n += !text || strcmp(hed_buf_cstr(&b), text) == 0 ? r.calls : 0;
        hed_buf_fini(&b);
    }
    return n;
}
