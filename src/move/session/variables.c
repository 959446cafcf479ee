/* Names of variables, from the code that the worker has: no driver lists them. See extents.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "driver/driver.h"
#include "kernel/fatbin.h"
#include "move/session/extents.h"
#include "remote/client.h"

struct naming {
    int (*fn)(void *arg, const char *name);
    void *arg;
};

/* ---- machine code ---------------------------------------------------------------------------- */

static int
name_in_cubin(struct naming *n, struct hed_bytes cubin)
{
    struct hed_code *code = NULL;
    int err = hed_cubin_describe(cubin, &code, NULL);

    if (err) /* the worker could not read it either */
        return err == HED_ENOMEM ? err : 0;
    for (uint32_t i = 0; i < code->var_count && !err; i++)
        if (!code->vars[i].managed)
            err = n->fn(n->arg, code->vars[i].name);
    hed_cubin_forget(code);
    return err;
}

/* ---- PTX ------------------------------------------------------------------------------------- */

/* The word at *at, which is advanced behind it; empty at the end of the text or of a statement.
 * Brackets, lengths and values are skipped by the caller. */
static struct hed_bytes
next_ptx_word(struct hed_bytes text, size_t *at)
{
    const char *p = (const char *)text.data;
    size_t begin;

    while (*at < text.size && isspace((unsigned char)p[*at]))
        ++*at;
    begin = *at;
    if (*at < text.size && p[*at] == '.')
        ++*at;
    while (*at < text.size && hed_ptx_is_name_char(p[*at]))
        ++*at;
    return hed_bytes_cut(text, begin, *at - begin);
}

/* A declaration of variables in .global or .const, of which *at is behind that word: qualifiers
 * (.align 8 .b8 .managed), then a name. Lists of several names do not occur at module scope in what
 * compilers write; other names in a list are found in the same way. */
static int
name_declared(struct naming *n, struct hed_bytes text, size_t *at)
{
    char name[HED_CODE_NAME_MAX];
    struct hed_bytes w;
    bool managed = false;

    for (;;) {
        w = next_ptx_word(text, at);
        if (w.size == 0)
            return 0;
        if (hed_bytes_equal(w, ".attribute")) {
            const uint8_t *end = memchr(text.data + *at, ')', text.size - *at);

            managed = true; /* .managed, or .unified, which no module can have here */
            if (!end)
                return 0;
            *at = (size_t)(end - text.data) + 1;
        } else if (w.data[0] != '.' && !isdigit((unsigned char)w.data[0])) {
            break;
        }
    }
    if (managed || w.size >= sizeof name)
        return 0;
    memcpy(name, w.data, w.size);
    name[w.size] = '\0';
    return n->fn(n->arg, name);
}

/* Skips a comment, a text, or one character. */
static size_t
skip_one(struct hed_bytes text, size_t at)
{
    const char *p = (const char *)text.data;
    const uint8_t *end = NULL;

    if (p[at] == '/' && at + 1 < text.size && p[at + 1] == '/')
        end = memchr(text.data + at, '\n', text.size - at);
    else if (p[at] == '"')
        end = memchr(text.data + at + 1, '"', text.size - at - 1);
    else if (p[at] == '/' && at + 1 < text.size && p[at + 1] == '*') {
        end = memmem(text.data + at + 2, text.size - at - 2, "*/", 2);
        end = end ? end + 1 : NULL;
    } else {
        return at + 1;
    }
    return end ? (size_t)(end - text.data) + 1 : text.size;
}

/* Variables at module scope, and those that functions declare (static ones of a kernel). */
static int
name_in_ptx(struct naming *n, struct hed_bytes text)
{
    size_t at = 0;
    int err = 0;

    while (at < text.size && !err) {
        if (text.data[at] != '.') {
            at = skip_one(text, at);
            continue;
        }

        /* Not the ".global" of an instruction, which is part of a longer word: ld.global.u32. */
        const bool begins = at == 0 || !hed_ptx_is_name_char((char)text.data[at - 1]);
        const struct hed_bytes w = next_ptx_word(text, &at);
        const bool alone = at < text.size && isspace((unsigned char)text.data[at]);

        if (begins && alone && (hed_bytes_equal(w, ".global") || hed_bytes_equal(w, ".const")))
            err = name_declared(n, text, &at);
    }
    return err;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int
name_in_code(void *arg, bool is_ptx, struct hed_bytes code)
{
    return is_ptx ? name_in_ptx(arg, hed_bytes_text(code)) : name_in_cubin(arg, code);
}

/* The parts that a program was linked from. */
static int
name_in_parts(struct naming *n, const void *const *parts)
{
    struct hed_image image;
    int err = 0;

    for (; parts && *parts && !err; parts++)
        if (hed_image_at(*parts, &image, NULL) == 0)
            err = hed_image_codes(image.bytes, name_in_code, n);
    return err;
}

static int
find_names(struct hed_remote *r, struct hed_remote_library *c, struct naming *n)
{
    const bool real = r->devices[c->device->ordinal].real;
    struct hed_profile profile;
    struct hed_bytes bytes;
    struct hed_buf made;
    int err;

    hed_remote_profile_there(r, c->device, &profile);
    hed_buf_init(&made, HED_IMAGE_MAX);
    err = hed_remote_pack(&c->image, &profile, real, &made, &bytes);
    if (!err) {
        struct hed_image packed;

        /* What is sent is a fat binary again, text, or the parts of a linked program. */
        if (hed_image_in(bytes, &packed, NULL) == 0)
            err = hed_image_codes(packed.bytes, name_in_code, n);
        else
            err = name_in_parts(n, c->image.parts);
    }
    hed_buf_fini(&made);
    return err;
}

/* ---- names that are known -------------------------------------------------------------------- */

struct hed_remote_names {
    int major, minor; /* of the device for which they are */
    bool real;
    size_t size;
    char text[]; /* one after the other, each with its 0 */
};

static int
add_variable_name(void *arg, const char *name)
{
    struct hed_buf *b = arg;

    hed_buf_add(b, name, strlen(name) + 1);
    return b->err;
}

/* Unpacking code takes long, so this is done once. */
static int
learn_names(struct hed_remote *r, struct hed_remote_library *c)
{
    const struct hed_remote_device *d = &r->devices[c->device->ordinal];
    struct hed_buf all;
    struct naming n = {.fn = add_variable_name, .arg = &all};
    int err;

    hed_buf_init(&all, HED_CONTENTS_MAX);
    err = find_names(r, c, &n);
    if (!err && !(c->names = malloc(sizeof *c->names + all.size)))
        err = HED_ENOMEM;
    if (!err) {
        *c->names = (struct hed_remote_names){
            .major = d->major, .minor = d->minor, .real = d->real, .size = all.size};
        if (all.size)
            memcpy(c->names->text, all.data, all.size);
    }
    hed_buf_fini(&all);
    return err;
}

bool
hed_remote_knows_names(const struct hed_remote *r, struct hed_code *code)
{
    const struct hed_remote_library *c = hed_remote_library(code);
    const struct hed_remote_device *d = &r->devices[c->device->ordinal];

    return c->names && c->names->major == d->major && c->names->minor == d->minor &&
           c->names->real == d->real;
}

int
hed_remote_variable_names(struct hed_remote *r, struct hed_code *code,
                          int (*fn)(void *arg, const char *name), void *arg)
{
    struct hed_remote_library *c = hed_remote_library(code);
    int err = c->names ? 0 : learn_names(r, c);

    if (err || !fn)
        return err;
    if (!hed_remote_knows_names(r, code))
        return find_names(r, c, &(struct naming){.fn = fn, .arg = arg});
    for (size_t at = 0; at < c->names->size && !err; at += strlen(c->names->text + at) + 1)
        err = fn(arg, c->names->text + at);
    return err;
}
