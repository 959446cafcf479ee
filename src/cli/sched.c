/* heddle sched: who shares a GPU with whom, and changing that while they run.
 *
 * There is no daemon to ask: the command looks at the shared memory where the programs meet
 * (sched/share.h), changes it under its lock, and decides anew, as any of them would.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "sched/share.h"

#define GPUS_MAX 64
#define UUID_DIGITS 32
#define OUTPUT_MAX (4u * 1024 * 1024)
#define GLANCE_NS (20 * HED_NS_PER_MS) /* between two looks at a program that nobody watches */

static const char usage[] =
    "usage: heddle sched list|set|pause|resume|release [OPTION...] [KEY=VALUE,...]\n"
    "\n"
    "Programs that run under `heddle run --sched` and share a GPU.\n"
    "\n"
    "  list           every program: priority, share, state, GPU time, time waited\n"
    "  set WISHES     change policy=NAME, hold_us, cap_us, slice_us, batch, batch_wait_us\n"
    "                 of a GPU; with --pid prio=, share=, deadline_us= of a program\n"
    "  pause          hold all launches, or those of a program (--pid)\n"
    "  resume         the opposite\n"
    "  release        let go what is held just now, once\n"
    "\n"
    "  --gpu WHICH    a GPU by the beginning of its UUID, or by its number in the list\n"
    "  --pid PID      only that program\n"
    "  --room NAME    programs of that room (--sched room=NAME)\n"
    "  --json         list: for programs to read\n"
    "  -h, --help     this text\n"
    "\n"
    "Exit codes: 0 done, 1 there is no such GPU or program, 2 wrong words.\n";

enum { OPT_GPU, OPT_PID, OPT_ROOM, OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_GPU] = {"gpu", true},    [OPT_PID] = {"pid", true},    [OPT_ROOM] = {"room", true},
    [OPT_JSON] = {"json", false}, [OPT_HELP] = {"help", false}, {NULL, false},
};

struct request {
    const char *verb;
    const char *wishes;
    const char *gpu;
    const char *room;
    uint64_t pid; /* 0: all */
    bool json;
    bool help;
};

struct gpu {
    struct hed_meet *meet;
    char uuid[UUID_DIGITS + 1];
    char room[HED_SCHED_NAME];
};

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- what there is --------------------------------------------------------------------------- */

/* NAME of heddle-UID-NAME is sched-[ROOM-]UUID. */
static bool
read_name(const char *name, struct gpu *g)
{
    const size_t begin = strlen(HED_SCHED_BEGIN);
    const size_t n = strlen(name);

    if (strncmp(name, HED_SCHED_BEGIN, begin) != 0 || n < begin + UUID_DIGITS)
        return false;
    memcpy(g->uuid, name + n - UUID_DIGITS, UUID_DIGITS + 1);
    if (strspn(g->uuid, "0123456789abcdef") != UUID_DIGITS)
        return false;

    const size_t room = n - begin - UUID_DIGITS;

    if (room > sizeof g->room || (room && name[begin + room - 1] != '-'))
        return false;
    snprintf(g->room, sizeof g->room, "%.*s", room ? (int)room - 1 : 0, name + begin);
    return true;
}

static bool
anybody(const struct gpu *g)
{
    for (uint32_t i = 0; i < HED_SCHED_PLACES; i++) {
        const struct hed_sched_place *p = hed_meet_place(g->meet, i);

        if (GET(p->present) && hed_meet_taken(g->meet, i, NULL))
            return true;
    }
    return false;
}

static int
by_uuid(const void *a, const void *b)
{
    return strcmp(((const struct gpu *)a)->uuid, ((const struct gpu *)b)->uuid);
}

/* The GPUs that somebody shares, in the order of their UUIDs. */
static size_t
find_gpus(const struct request *r, struct gpu *gpus)
{
    char begin[32];
    DIR *d = opendir("/dev/shm");
    const struct dirent *e;
    size_t count = 0;

    snprintf(begin, sizeof begin, "heddle-%u-", (unsigned)geteuid());
    while (d && count < GPUS_MAX && (e = readdir(d)) != NULL) {
        struct gpu g = {0};

        if (strncmp(e->d_name, begin, strlen(begin)) != 0 ||
            !read_name(e->d_name + strlen(begin), &g) || (r->room && strcmp(r->room, g.room) != 0))
            continue;
        if (hed_meet_look(e->d_name + strlen(begin), &hed_sched_shape, &g.meet, NULL) != 0)
            continue;
        if (anybody(&g))
            gpus[count++] = g;
        else
            hed_meet_leave(g.meet);
    }
    if (d)
        closedir(d);
    qsort(gpus, count, sizeof *gpus, by_uuid);
    return count;
}

/* By number or by the beginning of its UUID, with or without GPU- and dashes. */
static bool
is_meant(const struct request *r, const struct gpu *g, size_t index)
{
    const char *want = r->gpu;
    uint64_t number;
    size_t k = 0;

    if (!want)
        return true;
    if (strlen(want) < 4 && hed_parse_u64(want, &number) == 0)
        return number == index;
    if (strncmp(want, "GPU-", 4) == 0)
        want += 4;
    for (; *want; want++) {
        if (*want == '-')
            continue;
        if (k >= UUID_DIGITS || *want != g->uuid[k++])
            return false;
    }
    return true;
}

/* ---- list ------------------------------------------------------------------------------------ */

static const char *
state_of(const struct hed_sched_place *p, bool everybody_paused, uint64_t calls_before)
{
    const uint32_t gate = GET(p->gate);

    if (everybody_paused || GET(p->paused))
        return "paused";
    if (GET(p->waiting) || GET(p->queued))
        return "waiting";
    if (!GET(p->working) || (gate == 0 && hed_sched_calls(p) == calls_before))
        return "idle";
    return "running";
}

static const char *
priority_name(uint32_t priority)
{
    return priority == HED_PRIORITY_HIGH ? "high" : priority == HED_PRIORITY_LOW ? "low" : "normal";
}

static const char *
policy_name(const struct hed_sched_common *c)
{
    const uint32_t i = GET(c->policy);

    return i < HED_POLICY_COUNT ? hed_policies[i]->name : "?";
}

static void
add_text(struct hed_buf *b, const char *key, const char *value, size_t max)
{
    hed_str_field(b, key, value, strnlen(value, max));
}

static void
add_client(struct hed_buf *b, bool json, const struct hed_sched_place *p, const char *state,
           uint64_t share)
{
    const double in_flight =
        GET(p->ends) > hed_now_ns() ? (double)(GET(p->ends) - hed_now_ns()) / HED_NS_PER_MS : 0;

    if (!json) {
        char name[HED_SCHED_NAME];

        /* Whatever is in shared memory, it reaches the terminal as plain letters. */
        snprintf(name, sizeof name, "%.*s", HED_SCHED_NAME - 1, p->name);
        for (char *c = name; *c; c++)
            *c = *c < ' ' || *c == 0x7f ? '?' : *c;
        hed_buf_addf(
            b, "  %8d  %-16s %-7s %6" PRIu64 " %-8s %7u %6u %9.2f %12" PRIu64 " %11.3f %10.3f\n",
            GET(p->pid), name, priority_name(GET(p->priority)), share, state, GET(p->waiting),
            GET(p->queued), in_flight, hed_sched_calls(p), (double)GET(p->used) / HED_NS_PER_S,
            (double)GET(p->waited) / HED_NS_PER_S);
        return;
    }
    hed_buf_addf(b, "{\"pid\":%d,", GET(p->pid));
    add_text(b, "name", p->name, HED_SCHED_NAME);
    hed_buf_addf(b, ",");
    add_text(b, "group", p->group, HED_SCHED_NAME);
    hed_buf_addf(b,
                 ",\"priority\":\"%s\",\"share\":%" PRIu64 ",\"deadline_us\":%" PRIu64
                 ",\"state\":\"%s\",\"waiting\":%u,\"queued\":%u,\"in_flight_ms\":%.3f,"
                 "\"calls\":%" PRIu64 ",\"gpu_ns\":%" PRIu64 ",\"waited_ns\":%" PRIu64 "}",
                 priority_name(GET(p->priority)), share, GET(p->deadline) / 1000, state,
                 GET(p->waiting), GET(p->queued), in_flight, hed_sched_calls(p), GET(p->used),
                 GET(p->waited));
}

static void
add_gpu(struct hed_buf *b, bool json, struct gpu *g, size_t index, const uint64_t *calls)
{
    const struct hed_sched_common *c = hed_meet_common(g->meet);
    bool first = true;

    if (json)
        hed_buf_addf(b,
                     "{\"index\":%zu,\"uuid\":\"%s\",\"room\":\"%s\",\"policy\":\"%s\","
                     "\"paused\":%s,\"hold_us\":%" PRIu64 ",\"cap_us\":%" PRIu64
                     ",\"slice_us\":%" PRIu64 ",\"batch\":%u,\"batch_wait_us\":%" PRIu64
                     ",\"clients\":[",
                     index, g->uuid, g->room, policy_name(c), GET(c->paused) ? "true" : "false",
                     GET(c->hold) / 1000, GET(c->cap) / 1000, GET(c->slice) / 1000, GET(c->batch),
                     GET(c->batch_wait) / 1000);
    else
        hed_buf_addf(b,
                     "%zu  GPU-%s%s%s  policy %s%s\n  %8s  %-16s %-7s %6s %-8s %7s %6s %9s %12s "
                     "%11s %10s\n",
                     index, g->uuid, *g->room ? "  room " : "", g->room, policy_name(c),
                     GET(c->paused) ? ", paused" : "", "PID", "PROGRAM", "PRIO", "SHARE", "STATE",
                     "WAITING", "QUEUED", "IN FLIGHT", "CALLS", "GPU s", "WAITED s");
    for (uint32_t i = 0; i < HED_SCHED_PLACES; i++) {
        const struct hed_sched_place *p = hed_meet_place(g->meet, i);

        if (!GET(p->present) || !hed_meet_taken(g->meet, i, NULL))
            continue;
        if (json && !first)
            hed_buf_addf(b, ",");
        first = false;
        add_client(b, json, p, state_of(p, GET(c->paused), calls[i]), GET(p->weight));
    }
    if (json)
        hed_buf_addf(b, "]}");
}

static int
list(const struct request *r, struct gpu *gpus, size_t count)
{
    struct hed_buf b;
    static uint64_t calls[GPUS_MAX][HED_SCHED_PLACES];
    bool first = true;

    hed_buf_init(&b, OUTPUT_MAX);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < HED_SCHED_PLACES; k++)
            calls[i][k] = hed_sched_calls(hed_meet_place(gpus[i].meet, k));
    if (count)
        hed_sleep_ns(GLANCE_NS);
    if (r->json)
        hed_buf_addf(&b, "{\"gpus\":[");
    for (size_t i = 0; i < count; i++) {
        if (!is_meant(r, &gpus[i], i))
            continue;
        if (r->json && !first)
            hed_buf_addf(&b, ",");
        first = false;
        add_gpu(&b, r->json, &gpus[i], i, calls[i]);
    }
    if (r->json)
        hed_buf_addf(&b, "]}\n");
    else if (first)
        hed_buf_addf(&b, "No program shares a GPU (heddle run --sched).\n");
    fputs(hed_buf_cstr(&b), stdout);
    hed_buf_fini(&b);
    return HED_EXIT_OK;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Changes the clients of a GPU that are meant, or all of it; returns how many that were. */
static size_t
change_gpu(const struct request *r, struct gpu *g, const struct hed_sched_change *change)
{
    struct hed_sched_common *c = hed_meet_common(g->meet);
    size_t n = 0;

    if (hed_meet_lock(g->meet) != 0)
        return 0;
    for (uint32_t i = 0; i < HED_SCHED_PLACES; i++) {
        struct hed_sched_place *p = hed_meet_place(g->meet, i);

        if (!GET(p->present) || (r->pid && (uint64_t)GET(p->pid) != r->pid) ||
            !hed_meet_taken(g->meet, i, NULL))
            continue;
        n++;
        if (r->pid || change->release >= 0 || change->paused == 0)
            hed_sched_change_locked(p, change);
    }
    if (!r->pid && change->paused >= 0)
        atomic_store_explicit(&c->paused, (uint32_t)change->paused, memory_order_relaxed);
    hed_sched_decide_locked(g->meet, hed_now_ns());
    hed_meet_unlock(g->meet);
    return n;
}

#define OF_CLIENT (HED_SCHED_GIVEN_PRIORITY | HED_SCHED_GIVEN_WEIGHT | HED_SCHED_GIVEN_DEADLINE)

/* What the words ask for; false: said why not. */
static bool
read_change(const struct request *r, struct hed_sched_change *change)
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
        if (r->wishes)
            hed_cli_say("sched: %s takes no %s", r->verb, r->wishes);
        return !r->wishes;
    }
    if (!r->wishes) {
        hed_cli_say("sched: set what? See heddle sched --help");
        return false;
    }
    if (hed_sched_parse(r->wishes, &change->wish, &why) != 0) {
        hed_cli_say("%s", why.text);
        return false;
    }
    if (change->wish.given & (HED_SCHED_GIVEN_GROUP | HED_SCHED_GIVEN_ROOM)) {
        hed_cli_say("sched: a program keeps its group and its room");
        return false;
    }
    if (change->wish.given &
        (HED_SCHED_GIVEN_MODE | HED_SCHED_GIVEN_STREAM | HED_SCHED_GIVEN_QUEUE)) {
        hed_cli_say("sched: a program keeps the mode it was started with, and its queue");
        return false;
    }
    if (!r->pid && (change->wish.given & OF_CLIENT)) {
        hed_cli_say("sched: prio, share and deadline_us are a program's: which? (--pid)");
        return false;
    }
    return true;
}

static int
change_all(const struct request *r, struct gpu *gpus, size_t count)
{
    struct hed_sched_change change;
    size_t n = 0;

    if (!read_change(r, &change))
        return HED_EXIT_USAGE;
    for (size_t i = 0; i < count; i++) {
        if (!is_meant(r, &gpus[i], i))
            continue;

        const size_t here = change_gpu(r, &gpus[i], &change);

        n += here;
        if (here && (change.wish.given & ~(uint32_t)OF_CLIENT))
            (void)hed_sched_set_common(gpus[i].meet, &change.wish, hed_now_ns());
    }
    if (n == 0) {
        hed_cli_say("sched: there is no such program (heddle sched list)");
        return HED_EXIT_FAILED;
    }
    return HED_EXIT_OK;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool
take_word(struct request *r, const char *word)
{
    static const char *const verbs[] = {"list", "set", "pause", "resume", "release"};

    if (r->verb && !r->wishes) {
        r->wishes = word;
        return true;
    }
    for (size_t i = 0; !r->verb && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(word, verbs[i]) == 0)
            r->verb = verbs[i];
    if (!r->verb || r->wishes)
        hed_cli_say("sched: what is \"%s\"? See heddle sched --help", word);
    return r->verb && !r->wishes;
}

static int
parse(struct request *r, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    int option;

    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == HED_CLI_OPERAND && !take_word(r, o.value))
            return HED_EXIT_USAGE;
        if (option == OPT_GPU)
            r->gpu = o.value;
        if (option == OPT_ROOM)
            r->room = o.value;
        r->json = r->json || option == OPT_JSON;
        r->help = r->help || option == OPT_HELP;
        if (option == OPT_PID && (hed_parse_u64(o.value, &r->pid) != 0 || r->pid == 0)) {
            hed_cli_say("sched: --pid: \"%s\" is no process", o.value);
            return HED_EXIT_USAGE;
        }
    }
    if (!r->verb && !r->help) {
        hed_cli_say("sched: list, set, pause, resume or release? See heddle sched --help");
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

int
hed_cli_sched(int argc, char **argv)
{
    struct request r = {0};
    static struct gpu gpus[GPUS_MAX];
    int code = parse(&r, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (r.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }

    const size_t count = find_gpus(&r, gpus);

    code = strcmp(r.verb, "list") == 0 ? list(&r, gpus, count) : change_all(&r, gpus, count);
    for (size_t i = 0; i < count; i++)
        hed_meet_leave(gpus[i].meet);
    return code;
}
