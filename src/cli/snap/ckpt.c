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
#include "base/str.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/snap/live.h"
#include "cli/snap/private.h"
#include "cli/snap/supervise.h"
#include "wire/transport.h"

#define USUAL_DIR "heddle-snapshots"
#define USUAL_KEEP 3
#define SHORTEST_NS (100 * HED_NS_PER_MS) /* between two snapshots */

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
        hed_why_set(why, "keep=%s is not how many snapshots to keep, such as 3", value);
    } else if (strcmp(key, "zstd") == 0) {
        if (hed_parse_u64(value, &c->zstd) == 0 && c->zstd <= 19)
            return true;
        hed_why_set(why, "zstd=%s is not a level from 1 to 19", value);
    } else if (strcmp(key, "dir") == 0) {
        if (value[0])
            return hed_cli_absolute(value, c->dir, sizeof c->dir, why) == 0;
        hed_why_set(why, "dir= needs a folder");
    } else {
        hed_why_set(why, "'%s' is not one of every, keep, dir, zstd", key);
    }
    return false;
}

int
hed_ckpt_parse(const char *text, struct hed_ckpt *out, struct hed_why *why)
{
    struct hed_ckpt c = {.on = true, .keep = USUAL_KEEP};
    char word[PATH_MAX + 16];
    int err = hed_cli_absolute(USUAL_DIR, c.dir, sizeof c.dir, why);

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
    if (err == 0)
        *out = c;
    return err;
}

/* ---- from time to time ----------------------------------------------------------------------- */

/* What the children that save tell each other: a complaint is printed once. */
struct ckpt_memory {
    char said[512];
};

struct ckpt_state {
    const struct hed_ckpt *ckpt;
    pid_t pid;
    struct ckpt_memory *memory; /* may be NULL */
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

static int
save_once(void *arg)
{
    const struct ckpt_state *s = arg;
    const struct hed_snap_take t = {.pid = s->pid,
                                    .dir = s->ckpt->dir,
                                    .running = true,
                                    .zstd = (int)s->ckpt->zstd,
                                    .deadline_ms = HED_SNAP_DEADLINE_MS};
    struct hed_snap_taken taken;
    struct hed_why why = {""};
    int fd;

    /* A program that does not use CUDA yet, or has just ended, is no failure. */
    if (hed_talk_open(s->pid, &fd, &why) != 0)
        return HED_EXIT_OK;
    close(fd);
    if (hed_snap_take(&t, &taken, &why) == 0) {
        prune_snapshots(s->ckpt);
        if (s->memory)
            s->memory->said[0] = '\0';
        return HED_EXIT_OK;
    }
    if (kill(s->pid, 0) == 0 && (!s->memory || strcmp(s->memory->said, why.text) != 0)) {
        hed_cli_say("run: --ckpt: no snapshot of process %d: %s", (int)s->pid, why.text);
        if (s->memory)
            (void)hed_str_copy(s->memory->said, sizeof s->memory->said, why.text);
    }
    return HED_EXIT_FAILED;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int
bring_newest(const struct hed_ckpt_how *how, const char *address, pid_t *out)
{
    char dir[PATH_MAX], name[HED_SNAP_FILE_NAME];
    struct hed_snap_bring b = {.dir = how->resume, .address = address};
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
begin_program(const struct hed_ckpt_how *how, const char *address, const sigset_t *old, pid_t *out)
{
    if (how->resume) {
        const int err = bring_newest(how, address, out);

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

int
hed_ckpt_run(const struct hed_ckpt_how *how)
{
    struct hed_private_server server = {.pid = 0};
    struct ckpt_state state = {.ckpt = how->ckpt};
    struct hed_supervised s = {.every_ns = how->ckpt->every_ns, .tick = save_once, .arg = &state};
    struct hed_why why = {""};
    const char *address = how->gpu;
    int signal_number = 0;
    sigset_t old;
    int code = check_ckpt(how);

    if (code != HED_EXIT_OK)
        return code;
    if (!hed_address_is(how->gpu)) {
        if (hed_private_start(how->gpu, &server, &why) != 0) {
            hed_cli_say("run: --ckpt: %s", why.text);
            return HED_EXIT_BROKEN;
        }
        address = server.address;
    }
    state.memory = hed_child_shared(sizeof *state.memory);
    hed_supervise_prepare(&old);
    code = begin_program(how, address, &old, &s.pid);
    if (code == HED_EXIT_OK) {
        state.pid = s.pid;
        code = hed_supervise(&s, &signal_number);
    }
    hed_private_stop(&server);
    hed_child_shared_free(state.memory, sizeof *state.memory);
    if (signal_number)
        hed_supervise_die(signal_number);
    return code;
}
