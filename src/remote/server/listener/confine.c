/* The sandbox of this server's workers: whether there is one, what it lets them have, and how a new
 * worker enters it. remote/server/sandbox has the mechanisms; docs/security.md says what they are
 * for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/server/start.h"
#include "remote/wire/link/link.h"

/* Threads besides those of the channels: the engine's, the compiler's, the streams'. A channel may
 * have two while it is being attached. */
#define THREADS_MORE 2048
#define NAMED_BY 20 /* bytes of a certificate's subject that are in the name of its folders */

/* ---- at start -------------------------------------------------------------------------------- */

/* The folder in which the program lies, and with it heddle's libraries. */
static int
find_libraries(char *out, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", out, size - 1);

    if (n <= 0)
        return HED_ENOTFOUND;
    out[n] = '\0';

    char *slash = strrchr(out, '/');

    if (!slash || slash == out)
        return HED_ENOTFOUND;
    *slash = '\0';
    return 0;
}

static bool
listens_to_network(const struct hed_server_options *o)
{
    for (uint32_t i = 0; i < o->listen_count; i++)
        if (!o->listen[i].transport->link->local)
            return true;
    return false;
}

static enum hed_sandbox_mode
choose_mode(const struct hed_server *s)
{
    if (s->options->sandbox_given)
        return s->options->sandbox;
    return s->plan.cpu && listens_to_network(s->options) ? HED_SANDBOX_REQUIRE : HED_SANDBOX_AUTO;
}

/* Why workers cannot be confined at all; NULL if they can. */
static const char *
reason_against(const struct hed_server *s)
{
    if (s->plan.shares)
        return "a layer in the settings (trace, sched, record, mem_group) uses files or other "
               "processes";
    return NULL;
}

/* NVIDIA's driver looks for its threads in /proc, by the numbers that they have in their PID
 * namespace. Without a root of its own, the worker has the /proc of another. */
static void
leave_processes_out(struct hed_sandbox *box, struct hed_why *missing)
{
    const uint32_t processes = UINT32_C(1) << HED_STEP_PROCESSES;

    if (!box->driver || !(box->steps & processes) || box->steps >> HED_STEP_ROOT & 1)
        return;
    box->steps &= ~processes;
    hed_why_set(&missing[HED_STEP_PROCESSES], "NVIDIA's driver needs a root of its own for it");
}

static void
put_steps(uint32_t steps, const char *between, const char *quote, struct hed_buf *b)
{
    bool first = true;

    for (int i = 0; i < HED_STEP_COUNT; i++) {
        if (!(steps >> i & 1))
            continue;
        hed_buf_addf(b, "%s%s%s%s", first ? "" : between, quote, hed_sandbox_step_name(i), quote);
        first = false;
    }
}

void
hed_confine_write(const struct hed_server *s, struct hed_buf *b)
{
    hed_buf_addf(b, ",\"sandbox\":[");
    put_steps(s->sandbox.steps, ",", "\"", b);
    hed_buf_addf(b, "]");
}

static void
say_steps(const struct hed_server *s)
{
    struct hed_buf text;

    hed_buf_init(&text, 1024);
    put_steps(s->sandbox.steps, ", ", "", &text);
    hed_buf_addf(&text, "%c", 0);
    if (!text.err)
        hed_info(SERVER, "sandbox: %s", (const char *)text.data);
    hed_buf_fini(&text);
}

/* Says what this machine cannot do, and refuses to start if the mode insists on it. */
static int
judge_steps(const struct hed_server *s, enum hed_sandbox_mode mode, uint32_t wanted,
            const struct hed_why *missing, struct hed_why *why)
{
    for (int i = 0; i < HED_STEP_COUNT; i++) {
        if (!(wanted >> i & 1) || s->sandbox.steps >> i & 1)
            continue;
        if (mode == HED_SANDBOX_REQUIRE && hed_sandbox_needed() >> i & 1) {
            hed_why_set(why,
                        "the sandbox for workers cannot have '%s' here: %.300s. --sandbox auto "
                        "does without, but then clients may reach more of this machine",
                        hed_sandbox_step_name(i), missing[i].text);
            return HED_ENOTSUP;
        }
        if (i == HED_STEP_CGROUP) /* it is an addition to what limits the machine's use */
            hed_info(SERVER, "there are no control groups for workers: %s", missing[i].text);
        else
            hed_warn(SERVER, "sandbox: '%s' is not possible here: %s", hed_sandbox_step_name(i),
                     missing[i].text);
    }
    return 0;
}

void
hed_confine_limits(struct hed_server *s)
{
    if (!s->sandbox.steps)
        return;
    s->sandbox.threads = 2 * s->options->channels + THREADS_MORE;
    /* NVIDIA's driver reserves far more than it uses. */
    s->sandbox.memory =
        s->plan.driver && !s->options->worker_memory_given ? 0 : s->options->worker_memory;
}

/* ---- control groups -------------------------------------------------------------------------- */

/* What one worker may take of this machine's memory in all. */
static uint64_t
memory_of_worker(const struct hed_server *s)
{
    const struct hed_server_options *o = s->options;
    const uint64_t most = o->total_memory ? o->total_memory : UINT64_MAX;
    uint64_t sum = o->host_memory && s->sandbox.memory ? o->host_memory + s->sandbox.memory : most;

    /* The memory of devices is that of the machine. */
    for (int i = 0; s->plan.cpu && i < HED_LEASE_SOCKET_DEVICES && sum < most; i++) {
        if (s->ledger.total[i] || i == 0)
            sum = o->memory ? sum + o->memory : most;
    }
    sum = hed_min(sum, most);
    return sum == UINT64_MAX ? 0 : sum;
}

static void
group_name(uint32_t place, char out[32])
{
    (void)snprintf(out, 32, "worker-%u", place);
}

int
hed_confine_group(struct hed_server *s, uint32_t place, struct hed_why *why)
{
    const struct hed_group_limits limits = {.memory = memory_of_worker(s),
                                            .threads = s->sandbox.threads,
                                            .cpus = s->options->worker_cpus};
    char name[32], path[HED_GROUP_PATH];

    if (!hed_confine_has(s, HED_STEP_CGROUP))
        return 0;
    group_name(place, name);
    return hed_group_make(s->groups, name, &limits, path, why);
}

bool
hed_confine_ended(struct hed_server *s, uint32_t place)
{
    char name[32], path[HED_GROUP_PATH + 32];

    if (!hed_confine_has(s, HED_STEP_CGROUP))
        return false;
    group_name(place, name);
    (void)snprintf(path, sizeof path, "%s/%s", s->groups, name);

    const bool killed = hed_group_kills(path) > 0;

    if (!hed_group_remove(path))
        hed_warn(SERVER, "cannot remove the control group %s: %m", path);
    return killed;
}

/* Control groups for workers, and one to try it with. */
static void
begin_groups(struct hed_server *s, struct hed_why *missing)
{
    static char probe[HED_GROUP_PATH];
    const struct hed_group_limits none = {0};

    if (hed_groups_begin("", s->groups, missing) == 0 &&
        hed_group_make(s->groups, "worker-probe", &none, probe, missing) == 0)
        s->sandbox.group = probe;
    else
        s->sandbox.steps &= ~(UINT32_C(1) << HED_STEP_CGROUP);
}

static void
end_probe_group(struct hed_server *s)
{
    if (s->sandbox.group)
        (void)hed_group_remove(s->sandbox.group);
    s->sandbox.group = NULL;
    if (s->options->worker_cpus && !hed_confine_has(s, HED_STEP_CGROUP))
        hed_warn(SERVER, "--worker-cpus has no effect without control groups");
}

int
hed_confine_begin(struct hed_server *s, struct hed_why *why)
{
    static char libraries[PATH_MAX];
    struct hed_why missing[HED_STEP_COUNT] = {{""}};

    hed_worker_look(&s->plan);
    s->sandbox = (struct hed_sandbox){.folders = {-1, -1}};

    const enum hed_sandbox_mode mode = choose_mode(s);
    const char *against = reason_against(s);

    if (mode == HED_SANDBOX_OFF || (against && mode == HED_SANDBOX_AUTO)) {
        hed_info(SERVER, "sandbox: off (%s)", against ? against : "--sandbox off");
        return 0;
    }
    if (against) {
        hed_why_set(why, "workers cannot have a sandbox: %s; see --sandbox", against);
        return HED_ENOTSUP;
    }

    const uint32_t wanted = hed_sandbox_wanted();

    s->sandbox.steps = wanted;
    s->sandbox.driver = s->plan.driver;
    hed_confine_limits(s);
    s->sandbox.uid = s->sandbox.gid = s->options->worker_uids[0];
    s->sandbox.libraries = libraries;

    int err = find_libraries(libraries, sizeof libraries);

    if (!err) {
        begin_groups(s, &missing[HED_STEP_CGROUP]);
        err = hed_sandbox_probe(&s->sandbox, missing);
        end_probe_group(s);
    }
    if (err) {
        hed_why_set(why, "cannot find out how to confine workers: %s", hed_err_text(err));
        return err;
    }
    leave_processes_out(&s->sandbox, missing);
    err = judge_steps(s, mode, wanted, missing, why);
    if (!err)
        say_steps(s);
    return err;
}

bool
hed_confine_has(const struct hed_server *s, enum hed_sandbox_step step)
{
    return s->sandbox.steps >> step & 1;
}

/* ---- in the new process ---------------------------------------------------------------------- */

/* Opens the part of a folder that belongs to one client, and makes it if need be. Returns the
 * descriptor, or -1. */
static int
open_clients_folder(const char *parent, const char *client, const struct hed_sandbox *box)
{
    const bool group = box->steps >> HED_STEP_USER & 1;
    const int above = parent[0] ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat st;
    int fd = -1;

    if (above < 0)
        return -1;
    /* Whoever can write to the folder above could exchange the client's. */
    if (fstat(above, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
        (mkdirat(above, client, S_IRWXU) == 0 || errno == EEXIST))
        fd = openat(above, client, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)close(above);
    /* All workers are in the group; the sandbox keeps them in the folders of their client. */
    if (fd >= 0 && (fchown(fd, (uid_t)-1, group ? box->gid : (gid_t)-1) != 0 ||
                    fchmod(fd, group ? S_IRWXU | S_IRWXG : S_IRWXU) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0)
        hed_warn(SERVER, "workers cannot use the folder %s: only the server may write to it",
                 parent);
    return fd;
}

/* The path that leads to an open folder even where the folders above it cannot be searched. */
static const char *
folder_path(int fd, char *out, size_t size)
{
    out[0] = '\0';
    if (fd >= 0)
        (void)snprintf(out, size, "/proc/self/fd/%d", fd);
    return out;
}

/* What a client stores is for itself only, in folders of this name. Those who know the token are
 * one client: nothing tells them apart. Without TLS, whoever comes from the same address is. */
void
hed_confine_owner(const struct hed_peer *p, char *out, size_t size)
{
    const struct hed_conn_who *who = &p->who;
    const bool certified = who->certified;
    const uint8_t *bytes = certified ? who->subject : p->origin.bytes;
    const int count = certified ? NAMED_BY : (int)sizeof p->origin.bytes;

    if (p->link->local) {
        (void)snprintf(out, size, "uid-%u", p->user.uid);
        return;
    }
    if (p->guest) {
        (void)snprintf(out, size, "vm-%s", p->guest->name);
        return;
    }
    if (p->conn && !certified) {
        (void)snprintf(out, size, "token");
        return;
    }

    int n = snprintf(out, size, "%s-", certified ? "cert" : "net");

    for (int i = 0; i < count; i++)
        n += snprintf(out + n, size - (size_t)n, "%02x", bytes[i]);
}

/* The processes that compile for the worker have gone through the same steps. */
static int
fork_forkserver(const struct hed_sandbox *s, struct hed_why *why)
{
    const bool filters = s->steps >> HED_STEP_CALLS & 1;

    return hed_worker_forkserver(s->libraries, filters ? hed_filter_forkserver : NULL,
                                 filters ? hed_filter_compiler : NULL, why);
}

int
hed_confine_worker(const struct hed_server *s, const char *owner, uint32_t place,
                   struct hed_worker_start *start, struct hed_why *why)
{
    static char images[32], cache[32], variable[64]; /* as long as the process */
    struct hed_sandbox box = s->sandbox;
    char name[32], group[HED_GROUP_PATH + 32];

    if (!box.steps)
        return hed_worker_prepare(start, why);
    box.uid = s->options->worker_uids[0] + place;
    group_name(place, name);
    (void)snprintf(group, sizeof group, "%s/%s", s->groups, name);
    box.group = group;
    box.folders[0] = open_clients_folder(s->images, owner, &box);
    box.folders[1] = open_clients_folder(s->kernels, owner, &box);
    start->images = folder_path(box.folders[0], images, sizeof images);
    start->cache = folder_path(box.folders[1], cache, sizeof cache);
    start->confined = true;
    start->group = box.steps >> HED_STEP_USER & 1;
    /* By itself, the driver stores what it compiles in the home of the server's user. */
    (void)snprintf(variable, sizeof variable, "%s%s",
                   cache[0] ? "CUDA_CACHE_PATH=" : "CUDA_CACHE_DISABLE=1", cache);
    box.variable = box.driver ? variable : NULL;
    box.before_calls = s->plan.cpu ? fork_forkserver : NULL;

    const int err = hed_worker_prepare(start, why);

    return err ? err : hed_sandbox_enter(&box, why);
}
