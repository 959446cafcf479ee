/* printf of device code.
 *
 * The kernel passes the format and a block of arguments, each promoted as in C and aligned to its
 * own size: ints take 4 bytes, everything else 8. The text is formatted at once, collected for each
 * block, and written to the program's stdout in the order of the blocks when the grid is done. So
 * every run prints the same. Nothing is lost: when the limit is reached, the text is written early.
 * A format can ask for gigabytes, so one printf may do that in the middle, and notices there that
 * the grid has failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/rt.h"

#define SPEC_MOST 64                  /* bytes of one conversion: %-+ #0123.456lld */
#define FIELD_MOST 65536              /* the largest width or precision */
#define FORMAT_MOST ((size_t)1 << 20) /* bytes of a format */
#define TEXT_MOST (1 << 20)           /* bytes of one %s */
#define BLOCK_MOST ((size_t)1 << 20)  /* bytes of a block's text that wait for its end */
#define GRID_MOST ((size_t)16 << 20)  /* bytes of all blocks' texts that wait */

struct hed_output {
    struct hed_output *next;
    uint64_t block, order;
    size_t size;
    char text[];
};

struct arguments {
    const struct hed_ptx_grid *grid;
    uint64_t base;
    size_t at;
    uint32_t taken;
};

static uint64_t
take_argument(struct arguments *a, size_t size)
{
    uint64_t value = 0;

    a->at = hed_align_up(a->at, size);
    memcpy(&value, (const void *)(uintptr_t)hed_ptx_in_sandbox(a->grid, a->base + a->at), size);
    a->at += size;
    a->taken++;
    return value;
}

/* One conversion, cut out of the format. */
struct spec {
    char text[SPEC_MOST]; /* "%-8.3" so far: flags, width, precision */
    size_t size;
    bool wide;       /* 8 bytes: l, ll, j, z, t */
    int narrow;      /* the number of h */
    char conversion; /* 0 if the format ends inside */
    bool too_long;
};

static void
spec_add(struct spec *s, char c)
{
    if (s->size + 8 < sizeof s->text)
        s->text[s->size++] = c;
    else
        s->too_long = true;
}

static void
spec_number(struct spec *s, int v)
{
    char digits[16];

    snprintf(digits, sizeof digits, "%d", v);
    for (const char *p = digits; *p; p++)
        spec_add(s, *p);
}

/* Reads a width or a precision: digits, or * and an argument. */
static const char *
read_field_number(const char *p, struct spec *s, struct arguments *a)
{
    if (*p == '*') {
        const int v = (int)take_argument(a, 4);

        spec_number(s, v > FIELD_MOST ? FIELD_MOST : v < -FIELD_MOST ? -FIELD_MOST : v);
        return p + 1;
    }

    int v = 0;
    const char *digits = p;

    for (; *p >= '0' && *p <= '9'; p++)
        v = v < FIELD_MOST ? v * 10 + (*p - '0') : v;
    if (p != digits)
        spec_number(s, v > FIELD_MOST ? FIELD_MOST : v);
    return p;
}

/* Reads what follows a %; returns the rest of the format. */
static const char *
read_spec(const char *p, struct spec *s, struct arguments *a)
{
    *s = (struct spec){0};
    spec_add(s, '%');
    for (; *p && strchr("-+ #0", *p); p++)
        spec_add(s, *p);
    p = read_field_number(p, s, a);
    if (*p == '.') {
        spec_add(s, '.');
        p = read_field_number(p + 1, s, a);
    }
    for (; *p && strchr("hljztLq", *p); p++) {
        if (*p == 'h')
            s->narrow++;
        else
            s->wide = true;
    }
    s->conversion = *p;
    return *p ? p + 1 : p;
}

/* The specs consist of checked parts, and each argument has the type that its letter says. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void
print_integer(struct hed_buf *out, struct spec *s, uint64_t v)
{
    const bool is_signed = s->conversion == 'd' || s->conversion == 'i';

    if (!s->wide) {
        v = is_signed ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
        if (s->narrow == 1)
            v = is_signed ? (uint64_t)(int64_t)(int16_t)v : (uint16_t)v;
        else if (s->narrow > 1)
            v = is_signed ? (uint64_t)(int64_t)(int8_t)v : (uint8_t)v;
    }
    spec_add(s, 'l');
    spec_add(s, 'l');
    spec_add(s, s->conversion);
    if (is_signed)
        hed_buf_addf(out, s->text, (long long)v);
    else
        hed_buf_addf(out, s->text, (unsigned long long)v);
}

/* A text without an end would be read up to the end of memory. */
static void
bound_text_spec(struct spec *s)
{
    if (memchr(s->text, '.', s->size))
        return;
    spec_add(s, '.');
    spec_number(s, TEXT_MOST);
}

static void
print_conversion(struct hed_buf *out, struct spec *s, struct arguments *a)
{
    double d;
    uint64_t v;

    switch (s->conversion) {
    case '%':
        hed_buf_add(out, "%", 1);
        return;
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        print_integer(out, s, take_argument(a, s->wide ? 8 : 4));
        return;
    case 'c':
        spec_add(s, 'c');
        v = take_argument(a, 4);
        /* A 0 is a byte like any other, but it would end the text for hed_buf_addf. */
        if ((v & 0xff) == 0)
            hed_buf_add(out, "", 1);
        else
            hed_buf_addf(out, s->text, (int)(v & 0xff));
        return;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        v = take_argument(a, 8);
        memcpy(&d, &v, sizeof d);
        spec_add(s, s->conversion);
        hed_buf_addf(out, s->text, d);
        return;
    case 's':
        v = take_argument(a, 8);
        bound_text_spec(s);
        spec_add(s, 's');
        hed_buf_addf(out, s->text,
                     v ? (const char *)(uintptr_t)hed_ptx_in_sandbox(a->grid, v) : "(null)");
        return;
    case 'p':
        spec_add(s, 'p');
        hed_buf_addf(out, s->text, (void *)(uintptr_t)take_argument(a, 8));
        return;
    case 'n':
        (void)take_argument(a, 8); /* CUDA: "The %n conversion is not supported". */
        return;
    default:
        hed_buf_add(out, s->text, s->size);
        hed_buf_add(out, &s->conversion, s->conversion ? 1 : 0);
        return;
    }
}

#pragma GCC diagnostic pop

static uint64_t
block_index(const struct hed_block *b)
{
    const uint32_t *at = b->abi.ctaid, *n = b->grid->abi.nctaid;

    return at[0] + (uint64_t)n[0] * (at[1] + (uint64_t)n[1] * at[2]);
}

uint32_t
hed_rt_vprintf(struct hed_ptx_warp *warp, uint64_t format, uint64_t args)
{
    struct hed_block *b = hed_engine_warp_of(warp)->block;
    const uint64_t index = block_index(b);
    struct arguments a = {.grid = warp->grid, .base = args};
    const char *p = (const char *)(uintptr_t)hed_ptx_in_sandbox(warp->grid, format);

    hed_engine_warp_look(warp);
    /* "If the format string is NULL, -1 is returned, and if an internal error occurs, -2." */
    if (format == 0)
        return UINT32_MAX;
    /* Other threads may write to the text while it is read here. */
    hed_buf_reset(&b->format);
    hed_buf_add(&b->format, p, strnlen(p, FORMAT_MOST));
    p = hed_buf_cstr(&b->format);
    if (b->out_index != index)
        hed_output_add(b);
    b->out_index = index;
    while (*p) {
        const char *end = strchrnul(p, '%');
        struct spec s;

        hed_buf_add(&b->out, p, (size_t)(end - p));
        if (!*end)
            break;
        p = read_spec(end + 1, &s, &a);
        print_conversion(&b->out, &s, &a);
        if (b->out.size > BLOCK_MOST) {
            hed_output_add(b);
            hed_engine_warp_look(warp);
        }
    }
    if (b->out.size > BLOCK_MOST)
        hed_output_add(b);
    return b->out.err ? UINT32_MAX - 1 : a.taken;
}

/* ---- the grid's output ----------------------------------------------------------------------- */

static int
compare_outputs(const void *x, const void *y)
{
    const struct hed_output *a = *(struct hed_output *const *)x;
    const struct hed_output *b = *(struct hed_output *const *)y;

    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Through stdio, like the program's own text, so that the order is kept. */
static void
write_outputs(struct hed_output *list)
{
    size_t count = 0, i = 0;

    for (const struct hed_output *o = list; o; o = o->next)
        count++;
    if (count == 0)
        return;

    struct hed_output **sorted = malloc(count * sizeof(struct hed_output *));

    if (sorted) {
        for (struct hed_output *o = list; o; o = o->next)
            sorted[i++] = o;
        qsort(sorted, count, sizeof *sorted, compare_outputs);
        for (i = 0; i < count; i++)
            (void)fwrite(sorted[i]->text, 1, sorted[i]->size, stdout);
    }
    (void)fflush(stdout);
    free(sorted);
    while (list) {
        struct hed_output *o = list;

        list = o->next;
        free(o);
    }
}

void
hed_output_add(struct hed_block *b)
{
    struct hed_grid *g = b->grid;
    struct hed_buf *out = &b->out;
    struct hed_output *o = out->size ? malloc(sizeof *o + out->size) : NULL;
    struct hed_output *early = NULL;

    if (!o) {
        hed_buf_reset(out);
        return;
    }
    o->block = b->out_index;
    o->size = out->size;
    memcpy(o->text, out->data, out->size);
    hed_buf_reset(out);

    hed_lock(&g->out_lock);
    o->order = g->out_count++;
    o->next = g->out;
    g->out = o;
    g->out_bytes += o->size;
    if ((g->out_bytes > g->job->printf_limit && g->out_bytes > BLOCK_MOST) ||
        g->out_bytes > GRID_MOST) {
        early = g->out;
        g->out = NULL;
        g->out_bytes = 0;
    }
    hed_unlock(&g->out_lock);
    write_outputs(early);
}

void
hed_output_write(struct hed_grid *g)
{
    write_outputs(g->out);
    g->out = NULL;
}
