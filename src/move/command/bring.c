/* Making a saved program again: its process through CRIU, then its GPU memory through the program
 * itself. See live.h.
 *
 *     images out of the file  >  criu restore: held, as it was saved  >  ATTACH: it goes on
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "move/command/command.h"
#include "move/command/private.h"
#include "move/command/tails.h"
#include "move/command/trust.h"

#define ENDING_MS 2000 /* between the last words of a process and its end */

struct bringing {
    const struct hed_snap_bring *b;
    struct hed_criu criu;
    struct hed_snap_folder place;
    struct hed_snap_reader *reader;
    struct hed_snap_process process;
    int fds[HED_TALK_FDS_MAX]; /* the file, its homes */
    size_t count;
    struct hed_criu_folder images;
    struct hed_snap_brought *out;
};

static void
close_snapshot(struct bringing *s)
{
    hed_snap_reader_free(s->reader);
    for (size_t i = 0; i < s->count; i++)
        close(s->fds[i]);
    hed_snap_place_close(&s->place);
}

static int
open_snapshot(struct bringing *s, struct hed_why *why)
{
    struct hed_why passed = {""};
    size_t homes = 0;
    int fd = -1;
    int err = hed_snap_place_open(s->b->dir, false, &s->place, why);

    if (err != 0)
        return err;
    if (s->b->name) {
        (void)hed_str_copy(s->out->name, sizeof s->out->name, s->b->name);
        err = hed_snap_store_get(s->place.store, s->b->name, 0, &fd, &s->reader, why);
    } else {
        err = hed_snap_store_newest(s->place.store, s->b->session, UINT64_MAX, !s->b->glance, &fd,
                                    &s->reader, s->out->name, &passed);
        if (err != 0)
            hed_why_set(why, "%s: %s", s->place.dir, passed.text);
        else if (passed.text[0] && s->b->say)
            s->b->say("snap: %s", passed.text);
    }
    if (err != 0)
        return err;
    s->fds[s->count++] = fd;
    err = hed_snap_place_homes(&s->place, s->reader, s->fds + s->count, HED_TALK_FDS_MAX - s->count,
                               &homes, why);
    s->count += homes;
    for (size_t i = 0; err == 0 && i < s->count; i++)
        err = hed_snap_check_owner(s->fds[i], why);
    return err;
}

int
hed_snap_private_gpu(const char *dir, const char *name, char out[HED_SNAP_GPU], struct hed_why *why)
{
    const struct hed_snap_bring b = {.dir = dir, .name = name, .glance = true};
    struct hed_snap_brought found = {.pid = -1};
    struct bringing s = {.b = &b, .place = {.folder = -1}, .images = {.fd = -1}, .out = &found};
    int err = open_snapshot(&s, why);

    out[0] = '\0';
    if (err == 0)
        err = hed_snap_images_notes(s.reader, &s.process, why);
    if (err == 0) {
        /* Older snapshots do not say what it used. */
        const bool is_private = hed_private_is(hed_snap_reader_about(s.reader)->address);
        const char *gpu = s.process.private_gpu[0] ? s.process.private_gpu : HED_SNAP_PRIVATE_USUAL;

        (void)hed_str_copy(out, HED_SNAP_GPU, is_private ? gpu : "");
    }
    close_snapshot(&s);
    return err;
}

static int
check_machine(const struct bringing *s, struct hed_why *why)
{
    const struct hed_snap_about *about = hed_snap_reader_about(s->reader);
    struct utsname here;

    if (about->arch[0] && uname(&here) == 0 && strcmp(here.machine, about->arch) != 0) {
        hed_why_set(why,
                    "the program was saved on %s and cannot go on on this machine, which is %s",
                    about->arch, here.machine);
        return HED_ENOTSUP;
    }
    return 0;
}

/* Another program listens there: criu would take its socket away. */
static int
check_socket(const struct bringing *s, struct hed_why *why)
{
    struct hed_why ignored;
    int fd;

    if (hed_talk_open_at(s->process.socket, &fd, &ignored) != 0)
        return 0;
    close(fd);
    hed_why_set(why,
                "%s is in use: does the program still run, or one restored from the same "
                "snapshot? `heddle snap fork` makes several",
                s->process.socket);
    return HED_EEXIST;
}

static int
attach_program(struct bringing *s, struct hed_why *why)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    int fd = -1;

    hed_talk_ask(&q, HED_TALK_ATTACH);
    if (s->b->verify)
        q.flags |= HED_TALK_VERIFY;
    if (s->b->address)
        (void)hed_str_copy(q.address, sizeof q.address, s->b->address);

    int err = hed_talk_open_at(s->process.socket, &fd, why);

    if (err != 0)
        return err;
    err = hed_talk_check_peer(fd, s->out->pid, why);
    if (err == 0)
        err = hed_talk_exchange(fd, &q, s->fds, s->count, -1, &a, why);
    close(fd);
    if (err == 0)
        s->out->device_bytes = a.device_bytes;
    return err;
}

/* Has the program come to its own end? It goes on before it answers, so one that has little left to
 * do may be gone by then. Its sockets are closed a moment before it can be waited for; it is left
 * for whoever waits for it. */
static bool
has_finished(pid_t pid)
{
    for (int i = 0; i < ENDING_MS; i++) {
        siginfo_t info = {.si_pid = 0};

        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            return false;
        if (info.si_pid == pid)
            return info.si_code == CLD_EXITED;
        (void)usleep(1000);
    }
    return false;
}

static int
make_process(struct bringing *s, struct hed_why *why)
{
    const struct hed_snap_about *about = hed_snap_reader_about(s->reader);
    uint64_t start = hed_now_ns();
    int err = hed_criu_restore(&s->criu, &s->process.criu, s->images.path, &s->out->pid, why);

    if (err != 0)
        return err;
    s->out->process_ns = hed_now_ns() - start;
    start = hed_now_ns();
    (void)hed_str_copy(s->out->socket, sizeof s->out->socket, s->process.socket);
    memcpy(s->out->session, about->session, sizeof s->out->session);
    s->out->epoch = about->epoch;
    s->out->created_ns = about->created_ns;
    err = attach_program(s, why);
    s->out->memory_ns = hed_now_ns() - start;
    if (err == 0 || (err == HED_ETRUNC && has_finished(s->out->pid)))
        return 0;
    hed_snap_images_kill(s->images.path, SIGKILL);
    (void)waitpid(s->out->pid, NULL, 0);
    return err;
}

int
hed_snap_bring(const struct hed_snap_bring *b, struct hed_snap_brought *out, struct hed_why *why)
{
    struct bringing s = {.b = b, .place = {.folder = -1}, .images = {.fd = -1}, .out = out};
    int err;

    *out = (struct hed_snap_brought){.pid = -1};
    err = open_snapshot(&s, why);
    if (err == 0)
        err = check_machine(&s, why);
    if (err == 0)
        err = hed_criu_find(&s.criu, why);
    if (err == 0)
        err = hed_criu_folder_make(s.place.dir, &s.images, why);
    if (err == 0)
        err = hed_snap_images_get(s.reader, s.images.path, &s.process, why);
    if (err == 0 && s.process.has_user && !b->trust_user)
        err = hed_snap_check_user(s.process.user, why);
    if (err == 0)
        err = check_socket(&s, why);
    if (err == 0 && b->cut)
        out->cut = hed_snap_tails_cut(s.images.path, &s.process.criu);
    if (err == 0)
        err = make_process(&s, why);
    hed_criu_folder_remove(&s.images);
    close_snapshot(&s);
    return err;
}
