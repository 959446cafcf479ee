/* Saving a program: its GPU memory through the program itself, the rest through CRIU, all in one
 * file. See live.h.
 *
 *     the program is to end                 the program is to go on
 *
 *     CAPTURE   held, memory in the file    STAGE    held, memory copied in the GPU
 *     criu      stopped                     criu      goes on, but is still held
 *     images    into the file               CONTINUE  released; the staging copy goes into the file
 *     publish                               images    into the file
 *     kill                                  publish
 *
 * If there is no room for a staging copy, the second way begins with CAPTURE and ends with ATTACH.
 *
 * Invariant: until the file is published, the program exists and can go on. Whatever fails before
 * that, it is released (CONTINUE or ATTACH), and the file is removed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "move/command/command.h"
#include "move/command/guard.h"
#include "move/command/private.h"
#include "move/command/saved.h"
#include "move/command/trust.h"
#include "remote/remote.h"

struct taking {
    const struct hed_snap_take *t;
    struct hed_criu criu;
    struct hed_talk_answer info;
    struct hed_snap_process process;
    struct hed_snap_folder place;
    struct hed_snap_draft draft;
    struct hed_snap_reader *parent; /* NULL: none */
    int fds[HED_TALK_FDS_MAX];      /* the file, the parent, its homes */
    size_t count;
    uint8_t uuid[HED_SNAP_UUID];
    uint64_t epoch;
    struct hed_criu_folder images;
    struct hed_snap_guard guard;
    bool own; /* the program is this user's */
    struct hed_snap_taken *out;
};

/* ---- talking to the program ------------------------------------------------------------------ */

static void
ask_taking(const struct taking *s, enum hed_talk_kind kind, struct hed_talk_request *q)
{
    hed_talk_ask(q, kind);
    q->deadline_ms = s->t->deadline_ms;
    q->epoch = s->epoch;
    q->zstd = s->t->zstd;
    memcpy(q->uuid, s->uuid, sizeof q->uuid);
    if (s->parent)
        q->flags |= HED_TALK_PARENT;
    if (s->t->label)
        (void)hed_str_copy(q->label, sizeof q->label, s->t->label);
}

/* STAGE gets the parent and its homes; the others also the file. */
static int
call_program(struct taking *s, enum hed_talk_kind kind, struct hed_talk_answer *a,
             struct hed_why *why)
{
    const size_t skip = kind == HED_TALK_STAGE ? 1 : 0;
    struct hed_talk_request q;

    ask_taking(s, kind, &q);
    return hed_talk_call(s->t->pid, &q, s->fds + skip, s->count - skip, -1, a, why);
}

/* Lets the program go on after a failure. What went wrong before stays the first reason. */
static void
release_program(struct taking *s, enum hed_talk_state state, struct hed_why *why)
{
    struct hed_talk_answer a;
    struct hed_talk_request q;
    struct hed_why deeper = {""};
    int err;

    if (state == HED_TALK_PARKED) {
        hed_talk_ask(&q, HED_TALK_CONTINUE);
        err = hed_talk_call(s->t->pid, &q, NULL, 0, -1, &a, &deeper);
    } else {
        hed_talk_ask(&q, HED_TALK_ATTACH);
        err = hed_talk_call(s->t->pid, &q, s->fds, s->count, -1, &a, &deeper);
    }
    if (err != 0)
        hed_why_set(why, "%s; and the program cannot go on: %s", why->text, deeper.text);
    /* A program whose parked worker is lost finds out by itself. */
    s->out->stuck = err != 0 && state != HED_TALK_PARKED;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A server that `heddle run --ckpt` has started ends with the program, so whoever restores the
 * program needs to know what it used. */
static void
note_private_server(struct taking *s)
{
    char *gpu = s->process.private_gpu;

    if (hed_private_is(s->info.address) &&
        hed_ask_gpu(s->info.address, gpu, sizeof s->process.private_gpu) != 0)
        (void)hed_str_copy(gpu, sizeof s->process.private_gpu, HED_SNAP_PRIVATE_USUAL);
}

/* Checks everything that can be checked before the program is touched. */
static int
prepare_taking(struct taking *s, struct hed_why *why)
{
    int err = hed_criu_find(&s->criu, why);

    if (err != 0) {
        hed_why_set(why,
                    "a program cannot be saved here: %s. To free its GPU memory while it stays "
                    "here, paused, use `heddle snap out`",
                    why->text);
        return err;
    }
    err = hed_snap_ask_info(s->t->pid, &s->info, why);
    if (err == 0)
        err = hed_snap_check_info(&s->info, HED_TALK_RUNNING, why);
    if (err == 0)
        err = hed_criu_describe(s->t->pid, &s->process.criu, why);
    if (err == 0)
        err = hed_talk_path(s->t->pid, s->process.socket, why);
    s->process.criu_version = s->criu.version;
    memcpy(s->out->session, s->info.session, sizeof s->out->session);
    s->own = hed_snap_is_own_process(s->t->pid);
    s->process.has_user = hed_snap_user_of(s->t->pid, &s->process.user);
    if (err == 0)
        note_private_server(s);
    return err;
}

/* The newest snapshot of this program in the folder: only what has changed since is written. */
static int
open_taking_parent(struct taking *s, struct hed_why *why)
{
    char name[HED_SNAP_FILE_NAME];
    struct hed_why ignored = {""};
    size_t homes = 0;
    int fd = -1;

    if (s->t->own_file || hed_snap_store_newest(s->place.store, s->info.session, UINT64_MAX, false,
                                                &fd, &s->parent, name, &ignored) != 0)
        return 0;
    s->fds[s->count++] = fd;

    const int err = hed_snap_place_homes(&s->place, s->parent, s->fds + s->count,
                                         HED_TALK_FDS_MAX - s->count, &homes, why);

    s->count += homes;
    return err;
}

/* A chain must not become too long to be given to the program, and what is restored must not lie in
 * another user's files: then a full one begins. */
static void
drop_bad_parent(struct taking *s)
{
    struct hed_snap_sizes sizes;
    bool good = true;

    if (!s->parent)
        return;
    hed_snap_reader_sizes(s->parent, &sizes);
    for (size_t i = 1; i < s->count; i++)
        good = good && hed_snap_check_owner(s->fds[i], NULL) == 0;
    if (good && sizes.homes + 2 <= HED_SNAP_HOMES_MAX)
        return;
    hed_snap_reader_free(s->parent);
    s->parent = NULL;
    while (s->count > 1)
        close(s->fds[--s->count]);
}

/* The program's own name, as far as it can be believed: it becomes a file's. */
static void
name_taking(const struct taking *s, char name[HED_SNAP_FILE_NAME])
{
    const char *slash = strrchr(s->info.program, '/');
    const char *program = slash ? slash + 1 : s->info.program;

    (void)snprintf(name, HED_SNAP_FILE_NAME, "%.100s-%06" PRIu64, program, s->epoch);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._+-", *c))
            *c = '_';
    if (name[0] == '.')
        name[0] = '_';
}

static int
begin_taking(struct taking *s, struct hed_why *why)
{
    char name[HED_SNAP_FILE_NAME];
    int err = hed_snap_place_open(s->t->dir, !s->t->own_file, &s->place, why);

    if (err == 0)
        err = hed_snap_store_epoch(s->place.store, &s->epoch, why);
    if (err != 0)
        return err;
    if (getrandom(s->uuid, sizeof s->uuid, 0) != (ssize_t)sizeof s->uuid) {
        hed_why_set(why, "no random numbers: %s", strerror(errno));
        return HED_EIO;
    }
    if (s->t->name) {
        (void)hed_str_copy(name, sizeof name, s->t->name);
    } else {
        name_taking(s, name);
    }
    err = hed_snap_store_begin(s->place.store, name, s->uuid, &s->draft, why);
    if (err != 0)
        return err;
    s->fds[s->count++] = s->draft.fd;
    err = open_taking_parent(s, why);
    drop_bad_parent(s);
    return err;
}

/* From here on the file is ours alone: what is added to it decides about a process's rights. */
static int
claim_draft(struct taking *s, struct hed_why *why)
{
    struct hed_snap_about asked = {.epoch = s->epoch};
    int err = hed_snap_claim(&s->draft.fd, s->own, why);

    s->fds[0] = s->draft.fd;
    if (err != 0 || s->own)
        return err;
    memcpy(asked.uuid, s->uuid, sizeof asked.uuid);
    memcpy(asked.session, s->info.session, sizeof asked.session);
    return hed_snap_check_part(s->draft.fd, &asked, why);
}

static int
store_images(struct taking *s, struct hed_why *why)
{
    const int err = claim_draft(s, why);

    if (err != 0)
        return err;
    return hed_snap_images_put(s->draft.fd, s->parent, s->t->zstd, s->images.path, &s->process,
                               why);
}

static int
publish_taking(struct taking *s, struct hed_why *why)
{
    struct stat st;

    (void)snprintf(s->out->path, sizeof s->out->path, "%.3000s/%s", s->place.dir, s->draft.name);
    if (fstat(s->draft.fd, &st) == 0)
        s->out->file_bytes = (uint64_t)st.st_size;

    const int err = hed_snap_store_publish(s->place.store, &s->draft, !s->t->own_file, why);

    /* Published or not, the descriptor is closed. */
    s->fds[0] = -1;
    return err;
}

static void
count_taking(struct taking *s, const struct hed_talk_answer *a)
{
    s->out->device_bytes = a->device_bytes;
    s->out->written += a->written;
    s->out->same += a->same;
}

/* The program is held: its files have the size that criu will expect. */
static int
dump_process(struct taking *s, enum hed_criu_after after, struct hed_why *why)
{
    const int err = hed_criu_describe(s->t->pid, &s->process.criu, why);

    return err != 0 ? err : hed_criu_dump(&s->criu, &s->process.criu, s->images.path, after, why);
}

/* ---- the two ways ---------------------------------------------------------------------------- */

static int
take_and_end(struct taking *s, struct hed_why *why)
{
    struct hed_talk_answer a;
    int err = call_program(s, HED_TALK_CAPTURE, &a, why);

    if (err != 0)
        return err;
    count_taking(s, &a);
    err = dump_process(s, HED_CRIU_STOP, why);
    if (err == 0) {
        err = store_images(s, why);
        /* The file is attached to again if it cannot be published, so it must stay open. */
        if (err == 0) {
            const int copy = hed_snap_reading_copy(s->draft.fd);

            err = publish_taking(s, why);
            s->fds[0] = copy;
        }
        if (err == 0)
            hed_saved_tell(s->process.socket, s->t->pid, s->out->path);
        hed_snap_images_kill(s->images.path, err == 0 ? SIGKILL : SIGCONT);
    }
    if (err != 0)
        release_program(s, HED_TALK_CAPTURED, why);
    return err;
}

/* Stops, copies, goes on: where the GPU has no room for a staging copy. */
static int
take_without_staging(struct taking *s, uint64_t start, struct hed_why *why)
{
    struct hed_talk_answer a;
    int err = call_program(s, HED_TALK_CAPTURE, &a, why);

    if (err != 0)
        return err;
    count_taking(s, &a);
    err = dump_process(s, HED_CRIU_RUN, why);
    if (err != 0) {
        release_program(s, HED_TALK_CAPTURED, why);
        return err;
    }
    err = call_program(s, HED_TALK_ATTACH, &a, why);
    s->out->stall_ns = hed_now_ns() - start;
    s->out->stuck = err != 0;
    return err;
}

static int
take_with_staging(struct taking *s, uint64_t start, struct hed_why *why)
{
    struct hed_talk_answer a;
    struct hed_talk_request q;
    int fd = -1;
    int err = dump_process(s, HED_CRIU_RUN, why);

    if (err != 0) {
        release_program(s, HED_TALK_PARKED, why);
        return err;
    }
    s->out->staged = true;
    ask_taking(s, HED_TALK_CONTINUE, &q);
    err = hed_talk_open(s->t->pid, &fd, why);
    if (err != 0)
        return err;
    err = hed_talk_send(fd, &q, s->fds, s->count, why);
    if (err == 0)
        err = hed_talk_wait(fd, -1, q.kind, &a, why);
    s->out->stall_ns = hed_now_ns() - start; /* the first answer: the program goes on */
    if (err == 0)
        err = hed_talk_rest(fd, -1, &a, why);
    close(fd);
    if (err == 0)
        count_taking(s, &a);
    return err;
}

static int
take_and_go_on(struct taking *s, struct hed_why *why)
{
    const uint64_t start = hed_now_ns();
    struct hed_talk_answer a;
    int err = call_program(s, HED_TALK_STAGE, &a, why);

    if (err == 0)
        err = take_with_staging(s, start, why);
    else if (err == HED_ENOMEM || err == HED_ENOTSUP)
        err = take_without_staging(s, start, why);
    if (err == 0)
        err = store_images(s, why);
    return err == 0 ? publish_taking(s, why) : err;
}

static int
guard_taking(struct taking *s, struct hed_why *why)
{
    struct hed_snap_guarded g = {.say = s->t->say,
                                 .pid = s->t->pid,
                                 .store = s->place.store,
                                 .draft = &s->draft,
                                 .images = &s->images,
                                 .count = s->count};

    memcpy(g.fds, s->fds, s->count * sizeof g.fds[0]);
    return hed_snap_guard_begin(&g, &s->guard, why);
}

int
hed_snap_take(const struct hed_snap_take *t, struct hed_snap_taken *out, struct hed_why *why)
{
    struct taking s = {.t = t,
                       .place = {.folder = -1},
                       .draft = {.fd = -1},
                       .images = {.fd = -1},
                       .guard = {.fd = -1},
                       .out = out};
    const uint64_t start = hed_now_ns();

    *out = (struct hed_snap_taken){.path = ""};

    int err = prepare_taking(&s, why);

    if (err == 0)
        err = begin_taking(&s, why);
    if (err == 0)
        err = hed_criu_folder_make(s.place.dir, &s.images, why);
    if (err == 0)
        err = guard_taking(&s, why);
    if (err == 0)
        err = t->running ? take_and_go_on(&s, why) : take_and_end(&s, why);
    hed_snap_guard_end(&s.guard);
    hed_criu_folder_remove(&s.images);
    if (s.draft.fd >= 0) {
        s.fds[0] = -1; /* it is closed here */
        hed_snap_store_drop(s.place.store, &s.draft);
    }
    hed_snap_reader_free(s.parent);
    for (size_t i = 0; i < s.count; i++)
        if (s.fds[i] >= 0)
            close(s.fds[i]);
    hed_snap_place_close(&s.place);
    out->total_ns = hed_now_ns() - start;
    return err;
}
