/* What share/meet/copy.h describes. */
#include "share/meet/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "share/meet/file.h"

#define LOOK_FILE (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

struct hed_meet_copy {
    struct hed_meet file; /* the descriptor and the names; nothing is mapped */
    uid_t user;
    unsigned char *bytes; /* file.size of them */
};

/* Reads all of the file. HED_EFORMAT: it is shorter. */
static int
read_all(int fd, unsigned char *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t n = pread(fd, to + at, size - at, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? hed_err_from_errno(errno) : HED_EFORMAT;
        at += (size_t)n;
    }
    return 0;
}

static int
open_to_look(struct hed_meet_copy *c, const struct hed_meeting_folder *folder, struct hed_why *why)
{
    struct stat st;

    c->file.fd = openat(folder->fd, c->file.name, LOOK_FILE);
    if (c->file.fd < 0 || fstat(c->file.fd, &st) != 0)
        return hed_meet_explain(&c->file, why, errno);
    if (!hed_meeting_owns(folder, c->file.fd)) {
        hed_why_set(why, "%s/%s: other users can access this file, or it is not a file; remove it",
                    folder->path, c->file.name);
        return HED_EACCESS;
    }
    c->user = st.st_uid;
    return hed_meet_judge(&c->file, why);
}

static int
copy_file(struct hed_meet_copy *c, const struct hed_meeting_folder *folder, struct hed_why *why)
{
    int err = open_to_look(c, folder, why);

    if (err)
        return err;
    /* Aligned as the words in it are. */
    c->bytes = aligned_alloc(HED_MEET_LINE, c->file.size);
    if (!c->bytes) {
        hed_why_set(why, "%s: %s", c->file.name, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    err = read_all(c->file.fd, c->bytes, c->file.size);
    if (err)
        hed_why_set(why, "%s/%s: %s", folder->path, c->file.name, hed_err_text(err));
    return err;
}

int
hed_meet_copy(const struct hed_meeting_folder *folder, const char *name,
              const struct hed_meet_shape *shape, struct hed_meet_copy **out, struct hed_why *why)
{
    struct hed_meet_copy *c = calloc(1, sizeof *c);
    int err;

    if (!c) {
        hed_why_set(why, "%s: %s", name, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    c->file.fd = -1;
    err = hed_meet_name_file(&c->file, name, shape, why);
    c->file.folder = *folder;
    c->file.folder.fd = -1; /* the caller's */
    if (!err)
        err = copy_file(c, folder, why);
    if (err) {
        hed_meet_copy_free(c);
        return err;
    }
    *out = c;
    return 0;
}

void
hed_meet_copy_free(struct hed_meet_copy *c)
{
    if (!c)
        return;
    if (c->file.fd >= 0)
        close(c->file.fd);
    free(c->bytes);
    free(c);
}

uid_t
hed_meet_copy_user(const struct hed_meet_copy *c)
{
    return c->user;
}

const void *
hed_meet_copy_common(const struct hed_meet_copy *c)
{
    return c->bytes + HED_MEET_LINE;
}

const void *
hed_meet_copy_slot(const struct hed_meet_copy *c, uint32_t index)
{
    return c->bytes + hed_meet_slot_offset(&c->file.shape, index) + HED_MEET_LINE;
}

bool
hed_meet_copy_taken(const struct hed_meet_copy *c, uint32_t index)
{
    return hed_meet_is_byte_locked(c->file.fd, hed_meet_use_byte(index));
}
