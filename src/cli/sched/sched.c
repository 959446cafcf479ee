/* heddle sched: who shares a GPU with whom, and changing that while they run.
 *
 * There is no daemon to ask: the command looks at the shared memory where the programs meet
 * (share/sched/share.h), changes it under its lock, and decides anew, as any of them would.
 */
#include "cli/sched/sched.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/str.h"
#include "cli/cli.h"
#include "core/config.h"

#define NAMED_MAX 2 /* GPUs that are named in one line */

static const char usage[] =
    "usage: heddle sched COMMAND [OPTION...] [KEY=VALUE,...]\n"
    "\n"
    "Shows and controls the programs that share a GPU (heddle run --sched).\n"
    "\n"
    "  list           show every program: priority, share, state, calls held,\n"
    "                 calls made, GPU time, time waited, and how long its memory\n"
    "                 was off the GPU (swap=on)\n"
    "  set SETTINGS   change policy=NAME, hold_us, cap_us, slice_us, batch and\n"
    "                 batch_wait_us of a GPU; with --pid, prio, share,\n"
    "                 deadline_us and swap of a program\n"
    "  pause          hold all calls that put work on the GPU\n"
    "  resume         end a pause\n"
    "  release        let the calls that are held now go on; later ones are held\n"
    "  policies       list the policies and what each does\n"
    "\n"
    "  --gpu WHICH    only that GPU: the start of its UUID, or its number in the list\n"
    "  --pid PID      only that program, with all its clients\n"
    "  --scope NAME   only programs of that scope (--sched scope=NAME)\n"
    "  --json         list: print JSON\n"
    "  -h, --help     show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if no GPU or program matches, 2 if an option or\n"
    "setting is wrong.\n";

enum { OPT_GPU, OPT_PID, OPT_SCOPE, OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_GPU] = {"gpu", true},    [OPT_PID] = {"pid", true},    [OPT_SCOPE] = {"scope", true},
    [OPT_JSON] = {"json", false}, [OPT_HELP] = {"help", false}, {NULL, false},
};

/* Relaxed: under the lock, or single numbers. */
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- what there is --------------------------------------------------------------------------- */

bool
hed_cli_sched_wants_pid(const struct hed_cli_sched *r, int32_t pid)
{
    bool is = r->pid == 0 || (uint64_t)pid == r->pid;

    for (size_t i = 0; i < r->below_count && !is; i++)
        is = r->below[i] == pid;
    return is;
}

size_t
hed_cli_sched_number(const struct hed_cli_sched *r, const struct hed_sched_scene *s, size_t index)
{
    size_t n = 0;

    for (size_t i = 0; i < index; i++)
        n += !r->scope || strcmp(r->scope, s->gpus[i]->scope) == 0;
    return n;
}

/* --gpu is its number, or the beginning of its UUID, with or without GPU- and dashes. */
bool
hed_cli_sched_wants_gpu(const struct hed_cli_sched *r, const struct hed_sched_scene *s,
                        size_t index)
{
    const struct hed_sched_gpu *g = s->gpus[index];
    const char *want = r->gpu;
    uint64_t number;
    size_t k = 0;

    if (r->scope && strcmp(r->scope, g->scope) != 0)
        return false;
    if (!want)
        return true;
    if (strlen(want) < 4 && hed_parse_u64(want, &number) == 0)
        return number == hed_cli_sched_number(r, s, index);
    if (strncmp(want, "GPU-", 4) == 0)
        want += 4;
    for (; *want; want++) {
        if (*want == '-')
            continue;
        if (k >= HED_SCHED_UUID_DIGITS || tolower((unsigned char)*want) != g->uuid[k++])
            return false;
    }
    return k > 0;
}

void
hed_cli_sched_look(struct hed_sched_scene *out)
{
    struct hed_meeting_folders folders;
    struct hed_why why = {""};
    int err = hed_meeting_open(false, &folders, &why);

    if (err && err != HED_ENOTFOUND)
        hed_cli_say("sched: %s", why.text);
    if (err)
        return;
    err = hed_sched_look(&folders, out);
    hed_meeting_close(&folders);
    hed_sched_scene_sort(out);
    if (err)
        hed_cli_say("sched: %s", hed_err_text(err));
    else if (out->problem.text[0])
        hed_cli_say("sched: %s", out->problem.text);
}

/* ---- changes --------------------------------------------------------------------------------- */

#define OF_CLIENT                                                                   \
    (HED_SCHED_GIVEN_PRIORITY | HED_SCHED_GIVEN_WEIGHT | HED_SCHED_GIVEN_DEADLINE | \
     HED_SCHED_GIVEN_SWAP)

/* The programs and GPUs that a change concerned. */
struct met {
    size_t gpus;
    size_t programs; /* clients of one process are one */
    int32_t pids[HED_SCHED_GPUS * HED_SCHED_SLOTS];
    char text[256]; /* "GPU-21e7fea3, GPU-21e7fea3 (scope x)" */
};

static void
met_program(struct met *m, int32_t pid)
{
    for (size_t i = 0; i < m->programs; i++)
        if (m->pids[i] == pid)
            return;
    m->pids[m->programs++] = pid;
}

static void
met_gpu(struct met *m, const struct hed_sched_gpu *g)
{
    const size_t n = strlen(m->text);

    if (m->gpus++ < NAMED_MAX)
        snprintf(m->text + n, sizeof m->text - n, "%sGPU-%.8s%s%s%s", n ? ", " : "", g->uuid,
                 *g->scope ? " (scope " : "", g->scope, *g->scope ? ")" : "");
}

/* Prints what was changed, because without --gpu, --pid and --scope a change concerns all programs
 * of this user. */
static void
print_changed(const struct hed_cli_sched *r, const struct met *m)
{
    const char *did = strcmp(r->verb, "pause") == 0    ? "paused"
                      : strcmp(r->verb, "resume") == 0 ? "resumed"
                                                       : "released the calls of";
    char more[32] = "";

    if (m->gpus > NAMED_MAX)
        snprintf(more, sizeof more, " and %zu more", m->gpus - NAMED_MAX);
    hed_cli_say("sched: %s %zu program%s on %s%s", did, m->programs, m->programs == 1 ? "" : "s",
                m->text, more);
}

/* Changes the clients of a GPU that are meant, or all of it. */
static int
change_gpu(const struct hed_cli_sched *r, const struct hed_sched_gpu *g, struct hed_meet *m,
           const struct hed_sched_change *change, struct met *met)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const int err = hed_meet_lock(m);
    bool any = false;

    if (err)
        return err;
    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
        struct hed_sched_slot *p = hed_meet_slot(m, i);

        if (!GET(p->present) || !hed_cli_sched_wants_pid(r, GET(p->pid)) ||
            !hed_meet_taken(m, i, NULL))
            continue;
        any = true;
        met_program(met, GET(p->pid));
        if (r->pid || change->release >= 0 || change->paused == 0)
            hed_sched_change_locked(p, change);
    }
    if (any)
        met_gpu(met, g);
    if (any && !r->pid && change->paused >= 0)
        atomic_store_explicit(&c->paused, (uint32_t)change->paused, memory_order_relaxed);
    hed_sched_decide_locked(m, hed_now_ns());
    hed_meet_unlock(m);
    return any && (change->settings.given & ~(uint32_t)OF_CLIENT)
               ? hed_sched_set_common(m, &change->settings, hed_now_ns())
               : 0;
}

/* The programs of a GPU may have ended since it was found. */
static int
find_and_change(const struct hed_cli_sched *r, const struct hed_sched_gpu *g,
                const struct hed_sched_change *change, struct met *met)
{
    struct hed_meet *m = NULL;
    struct hed_why why = {""};
    int err = hed_meet_look(g->file, &hed_sched_shape, &m, &why);

    if (!err)
        err = change_gpu(r, g, m, change, met);
    hed_meet_leave(m);
    return err == HED_ENOTFOUND ? 0 : err;
}

/* Reads what the words ask for. False: the reason was printed. */
static bool
read_change(const struct hed_cli_sched *r, struct hed_sched_change *change)
{
    struct hed_why why = {""};

    *change = (struct hed_sched_change){.paused = -1, .release = -1};
    if (strcmp(r->verb, "pause") == 0)
        change->paused = 1;
    else if (strcmp(r->verb, "resume") == 0)
        change->paused = 0;
    else if (strcmp(r->verb, "release") == 0)
        change->release = 1;
    if (strcmp(r->verb, "set") != 0) {
        if (r->settings)
            hed_cli_say("sched: unexpected '%s'; %s takes no settings", r->settings, r->verb);
        return !r->settings;
    }
    if (!r->settings) {
        hed_cli_say("sched: no settings given, such as policy=fair; see heddle sched --help");
        return false;
    }
    if (hed_sched_parse_change(r->settings, &change->settings, &why) != 0) {
        hed_cli_say("%s", why.text); /* it begins with "sched: " */
        return false;
    }
    if (!r->pid && (change->settings.given & OF_CLIENT)) {
        hed_cli_say("sched: prio, share, deadline_us and swap apply to one program; add --pid PID");
        return false;
    }
    return true;
}

static int
change_all(const struct hed_cli_sched *r)
{
    static struct met met;
    struct hed_sched_scene scene = {0};
    struct hed_sched_change change;
    int code = HED_EXIT_OK;

    if (!read_change(r, &change))
        return HED_EXIT_USAGE;
    hed_cli_sched_look(&scene);
    for (size_t i = 0; i < scene.count; i++) {
        const struct hed_sched_gpu *g = scene.gpus[i];
        const int err =
            hed_cli_sched_wants_gpu(r, &scene, i) ? find_and_change(r, g, &change, &met) : 0;

        if (!err)
            continue;
        hed_cli_say("sched: GPU-%.8s: its shared memory cannot be locked: %s", g->uuid,
                    hed_err_text(err));
        code = HED_EXIT_FAILED;
    }
    hed_sched_scene_free(&scene);
    if (met.programs == 0 && code == HED_EXIT_OK) {
        hed_cli_say("sched: no program matches; `heddle sched list` shows the programs");
        return HED_EXIT_FAILED;
    }
    if (met.programs && strcmp(r->verb, "set") != 0)
        print_changed(r, &met);
    return code;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void
unknown_verb(const char *word, const char *const *verbs, size_t count)
{
    const char *best = NULL;
    unsigned least = HED_CLI_FAR;

    for (size_t i = 0; i < count; i++) {
        const unsigned far = hed_cli_distance(word, verbs[i]);

        if (far < least) {
            least = far;
            best = verbs[i];
        }
    }
    if (best && hed_cli_similar(least, word))
        hed_cli_say("sched: there is no command '%s'; did you mean '%s'?", word, best);
    else
        hed_cli_say("sched: there is no command '%s'; see heddle sched --help", word);
}

static bool
take_sched_word(struct hed_cli_sched *r, const char *word)
{
    static const char *const verbs[] = {"list", "set", "pause", "resume", "release", "policies"};

    if (r->verb && !r->settings) {
        r->settings = word;
        return true;
    }
    for (size_t i = 0; !r->verb && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(word, verbs[i]) == 0)
            r->verb = verbs[i];
    if (!r->verb)
        unknown_verb(word, verbs, sizeof verbs / sizeof *verbs);
    else if (r->settings)
        hed_cli_say("sched: unexpected '%s'; separate settings by commas", word);
    return r->verb && !r->settings;
}

static int
parse_sched(struct hed_cli_sched *r, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    int option;

    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == HED_CLI_OPERAND && !take_sched_word(r, o.value))
            return HED_EXIT_USAGE;
        if (option == OPT_GPU)
            r->gpu = o.value;
        if (option == OPT_SCOPE)
            r->scope = o.value;
        r->json = r->json || option == OPT_JSON;
        r->help = r->help || option == OPT_HELP;
        if (option == OPT_PID && (hed_parse_u64(o.value, &r->pid) != 0 || r->pid == 0)) {
            hed_cli_say("sched: --pid '%s' is not a process id", o.value);
            return HED_EXIT_USAGE;
        }
    }
    if (r->pid > 0 && r->pid <= INT_MAX)
        r->below_count = hed_tree_below_heddle((pid_t)r->pid, r->below);
    if (!r->verb && !r->help) {
        fputs(usage, stderr);
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

static int
print_policies(const struct hed_cli_sched *r)
{
    if (r->settings) {
        hed_cli_say("sched: unexpected '%s'; policies takes no settings", r->settings);
        return HED_EXIT_USAGE;
    }
    for (int i = 0; i < HED_POLICY_COUNT; i++)
        printf("%-10s %s\n", hed_policies[i].name, hed_policies[i].help);
    return HED_EXIT_OK;
}

int
hed_cli_sched(int argc, char **argv)
{
    struct hed_cli_sched r = {0};
    static struct hed_config config; /* large */
    int code = parse_sched(&r, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (r.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (strcmp(r.verb, "policies") == 0)
        return print_policies(&r);

    struct hed_why why = {""};

    if (hed_config_load(&config, environ, &why) != 0) {
        hed_cli_say("sched: %s", why.text);
        return HED_EXIT_USAGE;
    }
    hed_meeting_choose(config.meet_dir);

    return strcmp(r.verb, "list") == 0 ? hed_cli_sched_list(&r) : change_all(&r);
}
