/* The space on the disk that images and compiled kernels take, of all clients together.
 *
 * Workers keep their own client's limit (worker/images.c, kernel/cache), and leave a
 * reserve free. But there may be many clients, and a client that has taken over its worker keeps no
 * limit. So now and then a process of its own looks at all folders, and removes the oldest files
 * until a tenth of the limit is free again. It is not a worker: it may write where the server may.
 * What is in the folders of clients is believed in nothing: no link is followed, and whatever the
 * name of a file there, it counts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"

#define AGAIN_NS (10 * HED_NS_PER_S)
#define DEPTH_MAX 16         /* folders in folders */
#define FILES_MAX (1u << 20) /* that one look takes into account */
#define SEEN_MAX (8u << 20)  /* entries of folders; a client may make them while they are read */
#define BLOCK_BYTES 512      /* unit of st_blocks */
#define FILE_LEAST 4096      /* bytes that a file counts as at least */

struct space_file {
    char *path; /* from the folder `top`; owned */
    int top;
    int64_t used_s, used_ns;
    uint64_t bytes;
};

struct space {
    struct space_file *files;
    size_t count, room, seen;
    uint64_t bytes;
};

static bool
is_hash_name(const char *name)
{
    return strlen(name) == HED_HASH_TEXT - 1 &&
           strspn(name, "0123456789abcdef") == HED_HASH_TEXT - 1;
}

/* As hed_confine_owner() names them. */
static bool
is_clients_folder(const char *name)
{
    static const char *const begins[] = {"uid-", "vm-", "cert-", "net-"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return strcmp(name, "token") == 0;
}

static void
add_space_file(struct space *s, int top, const char *path, const struct stat *st)
{
    const uint64_t bytes = hed_max((uint64_t)st->st_blocks * BLOCK_BYTES, FILE_LEAST);

    s->bytes += bytes;
    if (s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : 1024;
        struct space_file *more =
            room <= FILES_MAX ? realloc(s->files, room * sizeof *s->files) : NULL;

        if (!more)
            return;
        s->files = more;
        s->room = room;
    }

    char *own = strdup(path);

    if (own)
        s->files[s->count++] = (struct space_file){.path = own,
                                                   .top = top,
                                                   .used_s = st->st_mtim.tv_sec,
                                                   .used_ns = st->st_mtim.tv_nsec,
                                                   .bytes = bytes};
}

/* Takes ownership of the folder's descriptor. `above` is its path from `top`, with a '/' at the
 * end, or "". At the top there may be files of others. */
static void
measure_space(struct space *s, int top, int folder, const char *above, unsigned depth, bool images)
{
    DIR *d = fdopendir(folder);

    if (!d) {
        (void)close(folder);
        return;
    }
    for (const struct dirent *e; s->seen < SEEN_MAX && (e = readdir(d)); s->seen++) {
        char path[PATH_MAX];
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            snprintf(path, sizeof path, "%s%s", above, e->d_name) >= (int)sizeof path - 1)
            continue;
        if (S_ISDIR(st.st_mode)) {
            const int inner =
                depth < DEPTH_MAX && (depth > 0 || is_clients_folder(e->d_name))
                    ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : -1;

            (void)snprintf(path, sizeof path, "%s%s/", above, e->d_name);
            if (inner >= 0)
                measure_space(s, top, inner, path, depth + 1, images);
        } else if (S_ISREG(st.st_mode) && (depth > 0 || (images && is_hash_name(e->d_name)))) {
            add_space_file(s, top, path, &st);
        }
    }
    (void)closedir(d);
}

static int
compare_space_files(const void *x, const void *y)
{
    const struct space_file *a = x, *b = y;

    if (a->used_s != b->used_s)
        return a->used_s < b->used_s ? -1 : 1;
    return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

/* The folders above the file may have been exchanged meanwhile, so they are opened without
 * following links. */
static bool
remove_space_file(const struct space_file *f)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    char *name = strrchr(f->path, '/');
    int folder = f->top;

    if (name) {
        *name++ = '\0';
        folder = (int)syscall(SYS_openat2, f->top, f->path, &how, sizeof how);
        if (folder < 0)
            return false;
    }

    const bool done = unlinkat(folder, name ? name : f->path, 0) == 0;

    if (name)
        (void)close(folder);
    return done;
}

void
hed_space_sweep(const char *images, const char *kernels, uint64_t most)
{
    const char *const tops[] = {images, kernels};
    int fds[2];
    struct space s = {0};
    uint64_t removed = 0;

    for (int i = 0; i < 2; i++) {
        fds[i] = tops[i][0] ? open(tops[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        const int folder = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, 0) : -1;

        if (folder >= 0)
            measure_space(&s, fds[i], folder, "", 0, i == 0);
    }
    if (s.count && s.bytes > most)
        qsort(s.files, s.count, sizeof *s.files, compare_space_files);
    for (size_t i = 0; i < s.count && s.bytes > most - most / 10; i++) {
        if (s.bytes <= most && removed == 0)
            break;
        if (remove_space_file(&s.files[i])) {
            s.bytes -= hed_min(s.bytes, s.files[i].bytes);
            removed++;
        }
    }
    if (removed)
        hed_info(SERVER, "removed the %llu oldest images and kernels of clients (--images-total)",
                 (unsigned long long)removed);
    for (size_t i = 0; i < s.count; i++)
        free(s.files[i].path);
    free(s.files);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

uint64_t
hed_space_look(struct hed_server *s, uint64_t now_ns)
{
    const pid_t listener = getpid();

    if (!s->options->images_total || (!s->images[0] && !s->kernels[0]) || s->stopping)
        return UINT64_MAX;
    if (now_ns < s->space_ns)
        return s->space_ns;
    if (s->space)
        return now_ns + AGAIN_NS;
    /* A server without clients gets no more files. */
    if (s->child_count == 0 && s->space_ns)
        return UINT64_MAX;
    s->space_ns = now_ns + AGAIN_NS;
    s->space = fork();
    if (s->space == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != listener)
            _exit(1);
        int none = STDERR_FILENO;

        hed_child_prepare(&none, 1);
        hed_space_sweep(s->images, s->kernels, s->options->images_total);
        _exit(0);
    }
    if (s->space < 0) {
        s->space = 0;
        hed_warn(SERVER, "cannot look at the space that images take: %m");
    }
    return s->space_ns;
}
