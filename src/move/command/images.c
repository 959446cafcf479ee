/* The images of CRIU as part of a snapshot, and notes about the process. See live.h.
 *
 * The notes are lines of a key and a value, in the extent "process" of kind OBJECTS:
 *
 *     criu 31701
 *     pid 1234
 *     shell-job yes
 *     stream0 tty
 *     stream1 pipe:[4711]
 *     user 1000
 *     socket /dev/shm/heddle-1000/snap-1234
 *     private cpu:a100
 *
 * A reader passes over keys that it does not know.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "move/command/command.h"
#include "move/file/files.h"
#include "move/file/writer.h"

#define NOTES "process"
#define NOTES_MAX 65536u
#define IMAGES_MAX 65536u /* files of one process tree */

/* ---- notes ----------------------------------------------------------------------------------- */

static void
write_notes(struct hed_buf *b, const struct hed_snap_process *p)
{
    hed_buf_addf(b, "criu %d\npid %d\nshell-job %s\n", p->criu_version, (int)p->criu.pid,
                 p->criu.shell_job ? "yes" : "no");
    for (int i = 0; i < HED_CRIU_STREAMS; i++)
        if (p->criu.stream[i][0])
            hed_buf_addf(b, "stream%d %s\n", i, p->criu.stream[i]);
    if (p->has_user)
        hed_buf_addf(b, "user %u\n", (unsigned)p->user);
    hed_buf_addf(b, "socket %s\n", p->socket);
    if (p->private_gpu[0])
        hed_buf_addf(b, "private %s\n", p->private_gpu);
}

/* Is it what describe_stream() gives? It becomes a word of criu's command line. */
static bool
is_stream(const char *s)
{
    const size_t digits = strncmp(s, "pipe:[", 6) == 0 ? strspn(s + 6, "0123456789") : 0;

    const size_t size = strncmp(s, "file:", 5) == 0 ? strspn(s + 5, "0123456789") : 0;

    return strcmp(s, "tty") == 0 || (digits > 0 && strcmp(s + 6 + digits, "]") == 0) ||
           (size > 0 && size < 20 && strncmp(s + 5 + size, ":/", 2) == 0);
}

static bool
take_note(struct hed_snap_process *p, const char *key, const char *value)
{
    uint64_t n;

    if (strcmp(key, "criu") == 0)
        return hed_parse_u64(value, &n) == 0 && n <= INT_MAX ? (p->criu_version = (int)n, true)
                                                             : false;
    if (strcmp(key, "pid") == 0)
        return hed_parse_u64(value, &n) == 0 && n > 1 && n <= INT_MAX
                   ? (p->criu.pid = (pid_t)n, true)
                   : false;
    if (strcmp(key, "user") == 0)
        return hed_parse_u64(value, &n) == 0 && n <= UINT32_MAX
                   ? (p->user = (uid_t)n, p->has_user = true)
                   : false;
    if (strcmp(key, "shell-job") == 0)
        return hed_parse_bool(value, &p->criu.shell_job) == 0;
    if (strncmp(key, "stream", 6) == 0 && key[6] >= '0' && key[6] < '0' + HED_CRIU_STREAMS &&
        !key[7])
        return is_stream(value) &&
               hed_str_copy(p->criu.stream[key[6] - '0'], HED_CRIU_STREAM, value);
    if (strcmp(key, "socket") == 0)
        return value[0] == '/' && hed_str_copy(p->socket, sizeof p->socket, value);
    if (strcmp(key, "private") == 0)
        return value[0] && hed_str_copy(p->private_gpu, sizeof p->private_gpu, value);
    return true;
}

int
hed_snap_notes_read(const char *text, size_t size, struct hed_snap_process *out,
                    struct hed_why *why)
{
    char line[512];

    *out = (struct hed_snap_process){.criu_version = 0};
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t n = newline ? (size_t)(newline - text) - at : size - at;

        if (n >= sizeof line || memchr(text + at, '\0', n))
            goto bad;
        memcpy(line, text + at, n);
        line[n] = '\0';
        at += n + 1;

        char *blank = strchr(line, ' ');

        if (!blank)
            goto bad;
        *blank = '\0';
        if (!take_note(out, line, blank + 1))
            goto bad;
    }
    if (out->criu.pid > 0 && out->socket[0])
        return 0;
bad:
    hed_why_set(why, "the snapshot's notes about the process are damaged");
    return HED_EFORMAT;
}

/* ---- into a snapshot ------------------------------------------------------------------------- */

static bool
is_image_name(const char *name)
{
    const size_t n = strlen(name);

    return name[0] != '.' && n > 0 && n < 200 && !strchr(name, '/') &&
           !(n > 4 && strcmp(name + n - 4, ".log") == 0);
}

static int
put_image(struct hed_snap_writer *w, int folder, const char *name, struct hed_why *why)
{
    struct stat st;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int err = HED_EIO;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        hed_why_set(why, "cannot read the image %s: %s", name, strerror(errno));
    } else {
        const struct hed_snap_extent e = {.kind = HED_SNAP_FILE,
                                          .size = (uint64_t)st.st_size,
                                          .mode = st.st_mode & 0777,
                                          .name = name};

        err = hed_snap_extent_put_file(w, &e, fd);
        if (err != 0)
            hed_why_set(why, "cannot store the image %s: %s", name, hed_err_text(err));
    }
    if (fd >= 0)
        close(fd);
    return err;
}

static int
put_images(struct hed_snap_writer *w, const char *path, struct hed_why *why)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    int err = 0;

    if (!d) {
        hed_why_set(why, "cannot open %s: %s", path, strerror(errno));
        return HED_EIO;
    }
    while (err == 0 && (e = readdir(d)) != NULL)
        if (is_image_name(e->d_name))
            err = put_image(w, dirfd(d), e->d_name, why);
    closedir(d);
    return err;
}

static int
put_notes(struct hed_snap_writer *w, const struct hed_snap_process *p, struct hed_why *why)
{
    struct hed_buf b;

    hed_buf_init(&b, NOTES_MAX);
    write_notes(&b, p);

    const struct hed_snap_extent e = {.kind = HED_SNAP_OBJECTS, .size = b.size, .name = NOTES};
    const int err = b.err ? b.err : hed_snap_extent_put(w, &e, b.data);

    hed_buf_fini(&b);
    if (err != 0)
        hed_why_set(why, "cannot store notes: %s", hed_err_text(err));
    return err;
}

int
hed_snap_images_put(int fd, const struct hed_snap_reader *parent, int zstd, const char *folder,
                    const struct hed_snap_process *p, struct hed_why *why)
{
    const struct hed_snap_how how = {.zstd = zstd};
    struct hed_snap_writer *w = NULL;
    int err = hed_snap_writer_append(&hed_snap_files_real, fd, parent, &how, &w, why);

    if (err != 0)
        return err;
    err = put_images(w, folder, why);
    if (err == 0)
        err = put_notes(w, p, why);
    if (err == 0)
        err = hed_snap_writer_finish(w, why);
    else if (hed_snap_writer_reason(w)[0])
        hed_why_set(why, "%s (%s)", why->text, hed_snap_writer_reason(w));
    hed_snap_writer_free(w);
    return err;
}

/* ---- out of a snapshot ----------------------------------------------------------------------- */

static int
get_image(const struct hed_snap_reader *r, uint32_t id, int folder, void *room, size_t room_size,
          struct hed_why *why)
{
    const struct hed_snap_extent *e = hed_snap_extent_at(r, id);
    const uint32_t chunks = hed_snap_chunk_count(r, id);
    int err = 0;

    if (!is_image_name(e->name)) {
        hed_why_set(why, "the snapshot has an image with a name that no image has");
        return HED_EFORMAT;
    }

    const int fd =
        openat(folder, e->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        hed_why_set(why, "cannot write the image %s: %s", e->name, strerror(errno));
        return HED_EIO;
    }
    for (uint32_t i = 0; err == 0 && i < chunks; i++) {
        const size_t n = hed_snap_chunk_length(r, id, i);

        /* Zeros are free in a snapshot, and stay so. */
        if (hed_snap_chunk_where(r, id, i) == HED_SNAP_IS_ZERO) {
            err = lseek(fd, (off_t)n, SEEK_CUR) < 0 ? HED_EIO : 0;
        } else {
            err = n <= room_size ? hed_snap_chunk_get(r, id, i, room, n, why) : HED_EFORMAT;
            err = err ? err : hed_write_all(fd, room, n);
        }
    }
    if (err == 0 && ftruncate(fd, (off_t)e->size) != 0)
        err = HED_EIO;
    if (err != 0 && !why->text[0])
        hed_why_set(why, "cannot write the image %s: %s", e->name, strerror(errno));
    close(fd);
    return err;
}

static int
get_notes(const struct hed_snap_reader *r, void *room, size_t room_size,
          struct hed_snap_process *out, struct hed_why *why)
{
    const struct hed_snap_extent like = {.kind = HED_SNAP_OBJECTS, .name = NOTES};
    uint32_t id;

    if (!hed_snap_extent_find(r, &like, &id)) {
        hed_why_set(why, "the snapshot has GPU memory only, not the program: it was made by "
                         "heddle snap out, and only the program that it belongs to can use it");
        return HED_ENOTFOUND;
    }

    const size_t n = (size_t)hed_snap_extent_at(r, id)->size;

    if (n > NOTES_MAX || n > room_size || hed_snap_chunk_count(r, id) != 1) {
        hed_why_set(why, "the snapshot's notes about the process are damaged");
        return HED_EFORMAT;
    }

    const int err = hed_snap_chunk_get(r, id, 0, room, n, why);

    return err != 0 ? err : hed_snap_notes_read(room, n, out, why);
}

int
hed_snap_images_get(const struct hed_snap_reader *r, const char *folder,
                    struct hed_snap_process *out, struct hed_why *why)
{
    const size_t size = hed_snap_reader_about(r)->chunk_size;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    void *room = malloc(size > NOTES_MAX ? size : NOTES_MAX);
    int err = HED_ENOMEM;

    if (!room || fd < 0)
        hed_why_set(why, "%s: %s", folder, strerror(errno));
    else
        err = get_notes(r, room, size, out, why);
    for (uint32_t i = 0; err == 0 && i < hed_snap_extent_count(r); i++)
        if (hed_snap_extent_at(r, i)->kind == HED_SNAP_FILE)
            err = get_image(r, i, fd, room, size, why);
    free(room);
    if (fd >= 0)
        close(fd);
    return err;
}

int
hed_snap_images_notes(const struct hed_snap_reader *r, struct hed_snap_process *out,
                      struct hed_why *why)
{
    const size_t room = hed_snap_reader_about(r)->chunk_size;
    void *bytes = malloc(room > NOTES_MAX ? room : NOTES_MAX);
    const int err = bytes ? get_notes(r, bytes, room, out, why) : HED_ENOMEM;

    free(bytes);
    return err;
}

int
hed_snap_images_peek(const struct hed_snap_reader *r, struct hed_snap_process *out, void **files,
                     size_t *size, struct hed_why *why)
{
    const struct hed_snap_extent like = {.kind = HED_SNAP_FILE, .name = "files.img"};
    const size_t room = hed_snap_reader_about(r)->chunk_size;
    void *bytes = malloc(room > NOTES_MAX ? room : NOTES_MAX);
    uint32_t id;
    int err = bytes ? get_notes(r, bytes, room, out, why) : HED_ENOMEM;

    if (err == 0 && (!hed_snap_extent_find(r, &like, &id) || hed_snap_chunk_count(r, id) != 1)) {
        hed_why_set(why, "the snapshot's image of open files is not there, or too large");
        err = HED_ENOTFOUND;
    }
    if (err == 0) {
        *size = hed_snap_chunk_length(r, id, 0);
        err = *size <= room ? hed_snap_chunk_get(r, id, 0, bytes, *size, why) : HED_EFORMAT;
    }
    if (err == 0)
        *files = bytes;
    else
        free(bytes);
    return err;
}

/* ---- processes that have images -------------------------------------------------------------- */

void
hed_snap_images_kill(const char *folder, int signal_number)
{
    DIR *d = opendir(folder);
    const struct dirent *e;

    if (!d)
        return;
    while ((e = readdir(d)) != NULL) {
        int pid = 0;
        int end = 0;

        /* There is one image of memory for each process. */
        if (sscanf(e->d_name, "mm-%d.img%n", &pid, &end) == 1 && end > 0 && !e->d_name[end] &&
            pid > 1)
            (void)kill(pid, signal_number);
    }
    closedir(d);
}
