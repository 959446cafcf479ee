/* Files that a program was writing when it was saved. See tails.h.
 *
 * files.img is two words of magic, and then entries: a word with their size, and a message of
 * protobuf.
 *
 *     file_entry { type = 1, id = 2, reg = 3 { flags = 2, pos = 3, name = 6, size = 8, mode = 10 }}
 */
#include "move/command/tails.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "move/command/criu.h"

#define IMAGE_MAX (64u << 20) /* bytes; a process has not so many files */

enum { REG_FLAGS = 2, REG_POS = 3, REG_NAME = 6, REG_SIZE = 8, REG_MODE = 10 };
#define ENTRY_REG 3

/* ---- protobuf -------------------------------------------------------------------------------- */

struct message {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number;
    uint64_t value;       /* of a plain number */
    struct message inner; /* of anything with a length, else empty */
};

static bool
take_varint(struct message *m, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
        const uint8_t byte = *m->at++;

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* False at the end, or if what comes is none. */
static bool
take_field(struct message *m, struct field *f)
{
    uint64_t key, n;

    *f = (struct field){.number = 0};
    if (!take_varint(m, &key))
        return false;
    f->number = key >> 3;
    switch (key & 7) {
    case 0:
        return take_varint(m, &f->value);
    case 1:
        n = 8;
        break;
    case 2:
        if (!take_varint(m, &n))
            return false;
        break;
    case 5:
        n = 4;
        break;
    default:
        return false;
    }
    if (n > (uint64_t)(m->end - m->at))
        return false;
    f->inner = (struct message){m->at, m->at + n};
    m->at += n;
    return true;
}

/* ---- the image ------------------------------------------------------------------------------- */

struct open_file {
    uint64_t flags, pos, size, mode;
    bool sized;
    char path[PATH_MAX];
};

static void
read_open_file(struct message m, struct open_file *out)
{
    struct field f;

    *out = (struct open_file){.mode = S_IFREG};
    while (take_field(&m, &f)) {
        const size_t n = (size_t)(f.inner.end - f.inner.at);

        if (f.number == REG_FLAGS)
            out->flags = f.value;
        else if (f.number == REG_POS)
            out->pos = f.value;
        else if (f.number == REG_MODE)
            out->mode = f.value;
        else if (f.number == REG_SIZE) {
            out->size = f.value;
            out->sized = true;
        } else if (f.number == REG_NAME && n > 0 && n < sizeof out->path &&
                   !memchr(f.inner.at, 0, n))
            memcpy(out->path, f.inner.at, n);
    }
}

static bool
is_tail(const struct open_file *f)
{
    return f->sized && f->pos == f->size && S_ISREG((mode_t)f->mode) &&
           (f->flags & O_ACCMODE) == O_WRONLY && (f->flags & O_APPEND) == 0 && f->path[0] == '/';
}

static void
each_open_file(const void *image, size_t size,
               void (*visit)(void *arg, const struct open_file *file), void *arg)
{
    const uint8_t *bytes = image;
    struct open_file file;
    uint32_t n;

    for (size_t at = 2 * sizeof n; at + sizeof n <= size; at += n) {
        struct message m;
        struct field f;

        memcpy(&n, bytes + at, sizeof n);
        at += sizeof n;
        if (n > size - at)
            return;
        m = (struct message){bytes + at, bytes + at + n};
        while (take_field(&m, &f)) {
            if (f.number != ENTRY_REG || !f.inner.at)
                continue;
            read_open_file(f.inner, &file);
            visit(arg, &file);
        }
    }
}

struct tail_visit {
    void (*visit)(void *arg, const char *path, uint64_t size);
    void *arg;
};

static void
visit_tail(void *arg, const struct open_file *file)
{
    const struct tail_visit *v = arg;

    if (is_tail(file))
        v->visit(v->arg, file->path, file->size);
}

void
hed_snap_tails_each(const void *image, size_t size,
                    void (*visit)(void *arg, const char *path, uint64_t size), void *arg)
{
    struct tail_visit v = {.visit = visit, .arg = arg};

    each_open_file(image, size, visit_tail, &v);
}

/* ---- cutting --------------------------------------------------------------------------------- */

struct cutting {
    const struct hed_criu_process *process;
    unsigned count;
};

static bool
is_stream_path(const struct hed_criu_process *p, const char *path)
{
    for (int i = 0; i < HED_CRIU_STREAMS; i++) {
        const char *slash = strchr(p->stream[i], '/'); /* file:SIZE:PATH */

        if (slash && strcmp(slash, path) == 0)
            return true;
    }
    return false;
}

static void
cut_tail(void *arg, const char *path, uint64_t size)
{
    struct cutting *c = arg;
    struct stat st;

    if (size > INT64_MAX || is_stream_path(c->process, path))
        return;

    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return; /* criu will say so */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > size &&
        ftruncate(fd, (off_t)size) == 0)
        c->count++;
    close(fd);
}

unsigned
hed_snap_tails_cut(const char *folder, const struct hed_criu_process *p)
{
    struct cutting c = {.process = p};
    char path[PATH_MAX + 16];
    struct stat st;
    void *bytes = NULL;

    (void)snprintf(path, sizeof path, "%s/files.img", folder);

    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= IMAGE_MAX)
        bytes = malloc((size_t)st.st_size);
    if (bytes && hed_read_all(fd, bytes, (size_t)st.st_size) == 0)
        hed_snap_tails_each(bytes, (size_t)st.st_size, cut_tail, &c);
    free(bytes);
    close(fd);
    return c.count;
}

/* ---- checking -------------------------------------------------------------------------------- */

struct checking {
    const struct hed_criu_process *process;
    struct hed_why *why;
    int err;
};

static void
check_open_file(void *arg, const struct open_file *file)
{
    struct checking *c = arg;
    struct stat st;

    /* A file that is not there may have been removed while it was open: criu has kept it then. */
    if (c->err != 0 || !file->sized || !S_ISREG((mode_t)file->mode) || file->path[0] != '/' ||
        is_stream_path(c->process, file->path) || stat(file->path, &st) != 0)
        return;
    if ((uint64_t)st.st_size == file->size || (is_tail(file) && (uint64_t)st.st_size > file->size))
        return;
    hed_why_set(c->why,
                "%s, which the program had open, has %llu bytes, but had %llu in the snapshot",
                file->path, (unsigned long long)st.st_size, (unsigned long long)file->size);
    c->err = HED_ESTATE;
}

int
hed_snap_tails_check(const void *image, size_t size, const struct hed_criu_process *p,
                     struct hed_why *why)
{
    struct checking c = {.process = p, .why = why};

    each_open_file(image, size, check_open_file, &c);
    return c.err;
}
