/* Writes a page: what the build made of page/, with the facts and the events in between. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/trace/count.h"
#include "cli/trace/page.h"
#include "cli/trace/page_rows.h"
#include "see/see.h"

/* Made by page/embed.py. */
extern const char hed_page_head[];
extern const char hed_page_tail[];

#define LINE 57 /* bytes that make a line of base64 with 76 letters */
#define PAD 64  /* the letter after the 64 that mean something */

/* JSON inside a script: "<" stands only in texts, where \u003c means the same. */
static void
put_json(FILE *out, const char *json)
{
    for (const char *p = json; *p;) {
        const size_t n = strcspn(p, "<");

        fwrite(p, 1, n, out);
        p += n;
        if (*p == '<') {
            fputs("\\u003c", out);
            p++;
        }
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

struct base64 {
    FILE *out;
    unsigned char bytes[LINE];
    size_t count;
};

static void
flush_base64(struct base64 *b)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    char line[LINE / 3 * 4 + 1];
    size_t n = 0;

    for (size_t i = 0; i < b->count; i += 3) {
        const uint32_t left = (uint32_t)(b->count - i);
        const uint32_t v = (uint32_t)b->bytes[i] << 16 |
                           (left > 1 ? (uint32_t)b->bytes[i + 1] << 8 : 0) |
                           (left > 2 ? b->bytes[i + 2] : 0);

        line[n++] = letters[v >> 18];
        line[n++] = letters[v >> 12 & 63];
        line[n++] = letters[left > 1 ? v >> 6 & 63 : PAD];
        line[n++] = letters[left > 2 ? v & 63 : PAD];
    }
    line[n++] = '\n';
    fwrite(line, 1, n, b->out);
    b->count = 0;
}

static void
put_base64(struct base64 *b, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        b->bytes[b->count++] = ((const unsigned char *)bytes)[i];
        if (b->count == LINE)
            flush_base64(b);
    }
}

/* A browser's arrays have the byte order of its machine, and all that have browsers are little
 * endian, as this one is. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

/* order: the events by row, and by time within each. */
static void
put_columns(const struct hed_page *p, const uint32_t *order, FILE *out)
{
    struct base64 b = {.out = out};
    const struct hed_page_event *e = p->events;

    for (size_t i = 0; i < p->count; i++)
        put_base64(&b, &(double){(double)e[order[i]].start}, sizeof(double));
    for (size_t i = 0; i < p->count; i++)
        put_base64(&b, &(double){(double)(e[order[i]].end - e[order[i]].start)}, sizeof(double));
    for (size_t i = 0; i < p->count; i++)
        put_base64(&b, &e[order[i]].name, sizeof(uint32_t));
    for (size_t i = 0; i < p->count; i++)
        put_base64(&b, &e[order[i]].note, sizeof(uint32_t));
    for (size_t i = 0; i < p->count; i++)
        put_base64(&b, &e[order[i]].link, sizeof(uint32_t));
    if (b.count)
        flush_base64(&b);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static int
by_place(const void *a, const void *b, void *context)
{
    const struct hed_page *p = context;
    const struct hed_page_track *x = &p->tracks[*(const uint32_t *)a];
    const struct hed_page_track *y = &p->tracks[*(const uint32_t *)b];

    if (x->gpu != y->gpu)
        return x->gpu ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static void
add_label(const struct hed_page *p, const struct hed_page_track *t, struct hed_buf *b)
{
    const char *name = t->gpu ? NULL : hed_trace_thread_name(p->trace, t->thread);

    if (t->gpu)
        hed_buf_addf(b, "\"group\":\"GPU %" PRIu32 "\",\"gpu\":true,\"name\":\"stream %" PRIu64,
                     t->device, t->thread);
    else
        hed_buf_addf(b, "\"group\":\"Threads\",\"gpu\":false,\"name\":\"");
    if (t->gpu && !t->only_context)
        hed_buf_addf(b, " of context %" PRIu32, t->context);
    if (!t->gpu && name && *name) {
        hed_str_escape(b, name, strlen(name));
        hed_buf_addf(b, " ");
    }
    if (!t->gpu)
        hed_buf_addf(b, "%" PRIu64, t->thread);
    hed_buf_addf(b, "\"");
}

/* Writes the tracks with the numbers of events in their rows, and puts the first place of each row
 * into `places`. False if there is no memory. */
static bool
put_tracks(struct hed_page *p, size_t *places, FILE *out)
{
    uint32_t *order = calloc(p->track_count + 1, sizeof *order);
    size_t place = 0;

    if (!order)
        return false;
    for (uint32_t i = 0; i < p->track_count; i++)
        order[i] = i;
    qsort_r(order, p->track_count, sizeof *order, by_place, p);
    for (size_t i = 0; i < p->track_count; i++) {
        const struct hed_page_track *t = &p->tracks[order[i]];

        hed_buf_reset(&p->text);
        hed_buf_addf(&p->text, "%s\n{", i ? "," : "");
        add_label(p, t, &p->text);
        hed_buf_addf(&p->text, ",\"rows\":[");
        for (uint32_t n = t->rows; n; n = p->rows[n - 1].next) {
            hed_buf_addf(&p->text, "%s%zu", n == t->rows ? "" : ",", p->rows[n - 1].count);
            places[n - 1] = place;
            place += p->rows[n - 1].count;
        }
        hed_buf_addf(&p->text, "]}");
        put_json(out, hed_buf_cstr(&p->text));
    }
    free(order);
    return true;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* What `heddle trace summary --json` prints. False if there is no memory. */
static bool
put_summary(const struct hed_page *p, const char *path, FILE *out)
{
    struct hed_count count = {.full = false};
    struct hed_count_totals totals;
    char *json = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&json, &size);

    if (!f)
        return false;
    hed_count_init(&count);
    hed_count_add(&count, p->trace, &totals);
    hed_count_describe(&count, path, p->trace, &totals);
    hed_count_finish(&count, HED_SORT_TOTAL);
    hed_count_json(&count, f);

    const bool good = fclose(f) == 0 && json && !count.full;

    if (good)
        put_json(out, json);
    free(json);
    hed_gpu_devices_fini(&totals.gpus);
    hed_count_fini(&count);
    return good;
}

/* Ends the ranges that are open. */
static void
close_ranges(struct hed_page *p)
{
    const uint64_t last = hed_cli_trace_time(p->trace, hed_trace_state(p->trace)->last);

    for (size_t i = 0; i < p->count; i++) {
        struct hed_page_event *e = &p->events[i];

        if (e->end == UINT64_MAX)
            e->end = last > e->start ? last : e->start;
    }
}

/* The events by row. They were put in the order of time. */
static void
sort_events(const struct hed_page *p, size_t *places, uint32_t *order)
{
    for (uint32_t i = 0; i < p->count; i++)
        order[places[p->events[i].row]++] = i;
}

static bool
put_page(struct hed_page *p, const char *path, FILE *out, size_t *places, uint32_t *order)
{
    close_ranges(p);
    fputs(hed_page_head, out);
    fputs("<script type=\"application/json\" id=\"facts\">{\"tracks\":[", out);
    if (!put_tracks(p, places, out))
        return false;
    fprintf(out, "],\n\"count\":%zu,\"left_out\":%zu,\"end\":%" PRIu64 ",\"names\":[", p->count,
            p->left_out, hed_cli_trace_time(p->trace, hed_trace_state(p->trace)->last));
    put_json(out, hed_buf_cstr(&p->names.json));
    fprintf(out, "],\n\"kinds\":[%s],\n\"notes\":[", hed_buf_cstr(&p->kinds));
    put_json(out, hed_buf_cstr(&p->notes.json));
    fputs("],\n\"summary\":", out);
    if (!put_summary(p, path, out))
        return false;
    fputs("}</script>\n<script type=\"application/octet-stream\" id=\"events\">\n", out);
    sort_events(p, places, order);
    put_columns(p, order, out);
    fputs("</script>\n", out);
    fputs(hed_page_tail, out);
    return true;
}

bool
hed_page_write(struct hed_page *p, const char *path, FILE *file, struct hed_why *why)
{
    size_t *places = calloc(p->row_count + 1, sizeof *places);
    uint32_t *order = calloc(p->count + 1, sizeof *order);
    bool good = places && order;

    errno = 0;
    good = good && put_page(p, path, file, places, order);
    if (!good)
        hed_why_set(why, "%s", hed_err_text(HED_ENOMEM));
    else if (fflush(file) != 0 || ferror(file)) {
        hed_why_set(why, "%s", errno ? strerror(errno) : hed_err_text(HED_EIO));
        good = false;
    }
    free(places);
    free(order);
    return good;
}
