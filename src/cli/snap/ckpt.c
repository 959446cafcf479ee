/* heddle run --ckpt and --resume. See ckpt.h. */
#include "cli/snap/ckpt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/str.h"
#include "base/tree.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/supervise.h"
#include "move/move.h"
#include "remote/remote.h"

#define USUAL_DIR "heddle-snapshots"
#define USUAL_KEEP 3
#define USUAL_RECOVER 3
#define USUAL_WAIT_NS (60 * HED_NS_PER_S)
#define LONGEST_WAIT_NS (3600000 * HED_NS_PER_S) /* 1000 h: times can be added without a check */
#define SHORTEST_NS (100 * HED_NS_PER_MS)        /* between two snapshots */

/* ---- the words of --ckpt --------------------------------------------------------------------- */

static bool
take_ckpt_word(struct hed_ckpt *c, const char *key, const char *value, struct hed_why *why)
{
    if (strcmp(key, "every") == 0) {
        if (hed_snap_parse_time(value, &c->every_ns) == 0 && c->every_ns >= SHORTEST_NS)
            return true;
        hed_why_set(why, "every=%s is not a time such as 60s or 5m", value);
    } else if (strcmp(key, "keep") == 0) {
        if (hed_parse_u64(value, &c->keep) == 0 && c->keep >= 1 && c->keep <= UINT32_MAX)
            return true;
        hed_why_set(why, "keep=%s is not a number of snapshots, such as 3", value);
    } else if (strcmp(key, "zstd") == 0) {
        if (hed_parse_u64(value, &c->zstd) == 0 && c->zstd <= 19)
            return true;
        hed_why_set(why, "zstd=%s is not a level from 1 to 19", value);
    } else if (strcmp(key, "dir") == 0) {
        if (value[0])
            return hed_path_absolute(value, c->dir, sizeof c->dir, why) == 0;
        hed_why_set(why, "dir= needs a folder");
    } else if (strcmp(key, "recover") == 0) {
        c->recover = USUAL_RECOVER;
        if (!value[0] || (hed_parse_u64(value, &c->recover) == 0 && c->recover <= UINT32_MAX))
            return true;
        hed_why_set(why, "recover=%s is not a number of recoveries from one snapshot, such as 3",
                    value);
    } else if (strcmp(key, "wait") == 0) {
        if (hed_snap_parse_time(value, &c->wait_ns) == 0 && c->wait_ns <= LONGEST_WAIT_NS)
            return true;
        hed_why_set(why, "wait=%s is not a time such as 60s or 5m, at most 1000h", value);
    } else {
        hed_why_set(why, "'%s' is not one of every, keep, dir, zstd, recover, wait", key);
    }
    return false;
}

int
hed_ckpt_parse(const char *text, struct hed_ckpt *out, struct hed_why *why)
{
    struct hed_ckpt c = {.on = true, .keep = USUAL_KEEP, .wait_ns = USUAL_WAIT_NS};
    char word[PATH_MAX + 16];
    int err = hed_path_absolute(USUAL_DIR, c.dir, sizeof c.dir, why);

    for (const char *p = text; err == 0 && *p;) {
        const size_t n = strcspn(p, ",");

        (void)snprintf(word, sizeof word, "%.*s", (int)n, p);
        p += n + (p[n] == ',');

        char *equals = strchr(word, '=');

        if (!equals && strcmp(word, "on") == 0)
            continue;
        if (equals)
            *equals = '\0';
        if (!take_ckpt_word(&c, word, equals ? equals + 1 : "", why))
            err = HED_EINVAL;
    }
    if (err == 0 && c.recover > 0 && c.every_ns == 0) {
        hed_why_set(why, "recover needs snapshots to go back to: add every=60s, for example");
        err = HED_EINVAL;
    }
    if (err == 0)
        *out = c;
    return err;
}

/* ---- from time to time ----------------------------------------------------------------------- */

struct ckpt_state {
    const struct hed_ckpt *ckpt;
    pid_t pid;
    struct hed_ckpt_memory *memory;   /* shared with the children that save */
    struct hed_private_server server; /* pid 0: none, or gone */
};

static void
prune_snapshots(const struct hed_ckpt *c)
{
    struct hed_snap_folder place;
    struct hed_snap_pruned pruned;
    struct hed_why why = {""};

    if (hed_snap_place_open(c->dir, false, &place, &why) != 0)
        return;
    /* Another command that looks at the folder may keep us from it; the next time will do. */
    (void)hed_snap_store_prune(place.store, (uint32_t)c->keep, false, false, NULL, NULL, &pruned,
                               &why);
    hed_snap_place_close(&place);
}

/* A program that does not use CUDA yet, or ends, is no failure. */
static bool
program_listens(pid_t pid)
{
    struct hed_why ignored;
    int fd;

    if (hed_talk_open(pid, &fd, &ignored) != 0)
        return false;
    close(fd);
    return true;
}

static int
save_once(void *arg)
{
    const struct ckpt_state *s = arg;
    const struct hed_snap_take t = {.pid = s->pid,
                                    .dir = s->ckpt->dir,
                                    .running = true,
                                    .zstd = (int)s->ckpt->zstd,
                                    .deadline_ms = HED_SNAP_DEADLINE_MS,
                                    .say = hed_cli_say};
    struct hed_snap_taken taken;
    struct hed_why why = {""};

    if (!program_listens(s->pid))
        return HED_EXIT_OK;
    if (hed_snap_take(&t, &taken, &why) == 0) {
        memcpy(s->memory->session, taken.session, sizeof s->memory->session);
        s->memory->said[0] = '\0';
        prune_snapshots(s->ckpt);
        return HED_EXIT_OK;
    }
    if (!program_listens(s->pid))
        return HED_EXIT_OK;
    if (!s->memory->quiet && strcmp(s->memory->said, why.text) != 0) {
        hed_cli_say("run: --ckpt: no snapshot of process %d: %s", (int)s->pid, why.text);
        (void)hed_str_copy(s->memory->said, sizeof s->memory->said, why.text);
    }
    return taken.stuck ? HED_SUPERVISE_STUCK : HED_EXIT_FAILED;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int
bring_newest(const struct hed_ckpt_how *how, const char *address, struct hed_recovery *r,
             pid_t *out)
{
    char dir[PATH_MAX], name[HED_SNAP_FILE_NAME];
    struct hed_snap_bring b = {.dir = how->resume, .address = address, .say = hed_cli_say};
    struct hed_snap_brought brought;
    struct hed_why why = {""};
    struct stat st;

    if (stat(how->resume, &st) == 0 && !S_ISDIR(st.st_mode)) {
        if (hed_snap_place_split(how->resume, dir, name, &why) != 0)
            return HED_EINVAL;
        b.dir = dir;
        b.name = name;
    }

    const int err = hed_snap_bring(&b, &brought, &why);

    if (err == 0) {
        *out = brought.pid;
        (void)hed_path_absolute(b.dir, r->from_dir, sizeof r->from_dir, NULL);
        (void)hed_str_copy(r->from_name, sizeof r->from_name, brought.name);
        r->epoch = brought.epoch;
        hed_cli_say("run: process %d goes on from %s", (int)brought.pid, brought.name);
    } else if (err != HED_ENOTFOUND || !how->start) {
        hed_cli_say("run: --resume %s: %s", how->resume, why.text);
    }
    return err;
}

static int
start_program(const struct hed_ckpt_how *how, const char *address, const sigset_t *old, pid_t *out)
{
    fflush(NULL);

    const pid_t pid = fork();

    if (pid < 0) {
        hed_cli_say("run: cannot start a process: %s", strerror(errno));
        return HED_EXIT_BROKEN;
    }
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, old, NULL);
        /* The leader of its session is outside of this PID namespace, as for a command that enters
         * a container without a terminal: criu would not save it. */
        if (getsid(0) == 0)
            (void)setsid();
        _exit(how->start(how->arg, address));
    }
    *out = pid;
    return HED_EXIT_OK;
}

static int
begin_program(const struct hed_ckpt_how *how, const char *address, const sigset_t *old,
              struct hed_recovery *r, pid_t *out)
{
    if (how->resume) {
        const int err = bring_newest(how, address, r, out);

        if (err == 0)
            return HED_EXIT_OK;
        if (err != HED_ENOTFOUND || !how->start)
            return HED_EXIT_FAILED;
        hed_cli_say("run: there is no snapshot in %s yet, so the program starts from the beginning",
                    how->resume);
    }
    return start_program(how, address, old, out);
}

/* Checks what periodic snapshots need before anything is started. */
static int
check_ckpt(const struct hed_ckpt_how *how)
{
    struct hed_criu criu;
    struct hed_why why = {""};

    if ((how->ckpt->every_ns == 0 && !how->resume) || hed_criu_find(&criu, &why) == 0)
        return HED_EXIT_OK;
    hed_cli_say("run: %s: %s", how->resume ? "--resume" : "--ckpt every=...", why.text);
    return HED_EXIT_BROKEN;
}

static void
note_reaped(void *arg, pid_t pid)
{
    struct ckpt_state *s = arg;

    if (pid == s->server.pid)
        s->server.pid = 0;
}

/* The program has begun. Without help against lost servers it runs as well. */
static void
begin_recovering(struct hed_recovery *r, struct ckpt_state *s, struct hed_supervised *supervised)
{
    struct hed_why why = {""};

    if (s->ckpt->recover == 0)
        return;
    r->ckpt = s->ckpt;
    r->memory = s->memory;
    r->server = &s->server;
    if (hed_recovery_open(r, s->pid, &why) == 0)
        supervised->recovery = r;
    else
        hed_cli_say("run: --ckpt: recover: %s", why.text);
}

int
hed_ckpt_run(const struct hed_ckpt_how *how)
{
    struct ckpt_state state = {.ckpt = how->ckpt};
    struct hed_recovery recovery = {
        .listener = -1, .say = hed_cli_say, .gpu = how->gpu, .address = how->gpu};
    struct hed_supervised s = {.every_ns = how->ckpt->every_ns,
                               .tick = save_once,
                               .arg = &state,
                               .reaped = note_reaped,
                               .was_saved = hed_saved_hear};
    struct hed_why why = {""};
    int signal_number = 0;
    sigset_t old;
    int code = check_ckpt(how);

    if (code != HED_EXIT_OK)
        return code;
    state.memory = hed_child_shared(sizeof *state.memory);
    if (!state.memory ||
        (!hed_address_is(how->gpu) && hed_private_start(how->gpu, &state.server, &why) != 0)) {
        hed_cli_say("run: --ckpt: %s", state.memory ? why.text : hed_err_text(HED_ENOMEM));
        hed_child_shared_free(state.memory, sizeof *state.memory);
        return HED_EXIT_BROKEN;
    }
    if (state.server.pid > 0)
        recovery.address = state.server.address;
    if (how->ckpt->recover > 0)
        hed_tree_adopt();
    hed_supervise_prepare(&old);
    code = begin_program(how, recovery.address, &old, &recovery, &s.pid);
    if (code == HED_EXIT_OK) {
        state.pid = s.pid;
        begin_recovering(&recovery, &state, &s);
        code = hed_supervise(&s, &signal_number);
        hed_recovery_close(&recovery);
    }
    hed_private_stop(&state.server);
    hed_child_shared_free(state.memory, sizeof *state.memory);
    if (signal_number)
        hed_supervise_die(signal_number);
    return code;
}
