/* heddle cpu cache export, import: carries the cache to other machines. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/cpu/cache.h"
#include "kernel/cache.h"

struct carrying {
    const struct hed_cli_cache *asked;
    size_t taken, left_out;
    char reason[32]; /* of the last that was left out */
};

/* Is the entry to be taken along? Counts it otherwise. */
static bool
wants_entry(void *arg, const struct hed_cache_entry *e)
{
    struct carrying *x = arg;
    const char *useless = x->asked->all ? NULL : hed_cli_cache_useless(x->asked, 0, e);

    if (!useless)
        return true;
    (void)snprintf(x->reason, sizeof x->reason, "%s", useless);
    x->left_out++;
    return false;
}

static void
say_left_out(const struct carrying *x)
{
    if (x->left_out)
        hed_cli_say("%zu kernel%s left out, the last because of: %s (--all takes them along)",
                    x->left_out, x->left_out == 1 ? " was" : "s were", x->reason);
}

/* Puts the finished archive in its place. A device or a pipe is not replaced. */
static int
put_in_place(int fd, const char *temporary, const char *file, struct hed_why *why)
{
    struct stat st;

    if (lstat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
        hed_why_set(why, "it is no ordinary file");
        return HED_EINVAL;
    }
    if (fchmod(fd, 0644) == 0 && fsync(fd) == 0 && rename(temporary, file) == 0)
        return 0;
    hed_why_set(why, "%s", strerror(errno));
    return HED_EIO;
}

/* The archive appears when it is whole; what was there before stays until then. */
int
hed_cli_cache_export(const struct hed_cli_cache *c)
{
    struct carrying x = {.asked = c};
    char temporary[PATH_MAX];
    struct hed_why why;
    int err, fd = -1;

    errno = ENAMETOOLONG;
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.XXXXXX", c->file) < sizeof temporary)
        fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        hed_cli_say("cpu cache export: %s: %s", c->file, strerror(errno));
        return HED_EXIT_FAILED;
    }
    err = hed_archive_write(c->cache, fd, wants_entry, &x, &x.taken, &why);
    if (!err)
        err = put_in_place(fd, temporary, c->file, &why);
    (void)close(fd);
    if (err) {
        (void)unlink(temporary);
        hed_cli_say("cpu cache export: %s: %s", c->file, why.text);
        return HED_EXIT_FAILED;
    }
    hed_cli_tell("exported %zu kernel%s to %s", x.taken, x.taken == 1 ? "" : "s", c->file);
    say_left_out(&x);
    return HED_EXIT_OK;
}

static int
take_entry(void *arg, const struct hed_cache_entry *e, const void *bytes, size_t size)
{
    struct carrying *x = arg;
    int err;

    if (!wants_entry(x, e))
        return 0;
    err = hed_archive_keep(x->asked->cache, e, bytes, size);
    x->taken += err == 0;
    return err;
}

/* Checks all of it before anything is stored. */
static int
import_file(struct carrying *x, int fd, struct hed_why *why)
{
    struct stat st;
    int err = 0;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        hed_why_set(why, "it is no ordinary file");
        err = HED_EINVAL;
    }
    if (!err)
        err = hed_archive_read(fd, NULL, NULL, why);
    if (err)
        return err;
    hed_why_set(why, "a kernel cannot be stored in %s", hed_cache_path(x->asked->cache));
    return lseek(fd, 0, SEEK_SET) == 0 ? hed_archive_read(fd, take_entry, x, why) : HED_EIO;
}

int
hed_cli_cache_import(const struct hed_cli_cache *c)
{
    struct carrying x = {.asked = c};
    const int fd = open(c->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct hed_why why;
    int err;

    if (fd < 0) {
        hed_cli_say("cpu cache import: %s: %s", c->file, strerror(errno));
        return HED_EXIT_FAILED;
    }
    err = import_file(&x, fd, &why);
    (void)close(fd);
    hed_cache_trim(c->cache);
    if (err) {
        hed_cli_say("cpu cache import: %s: %s", c->file, why.text);
        return HED_EXIT_FAILED;
    }
    hed_cli_tell("imported %zu kernel%s from %s", x.taken, x.taken == 1 ? "" : "s", c->file);
    say_left_out(&x);
    return HED_EXIT_OK;
}
