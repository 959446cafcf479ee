/* A program that plays the part of one with a remote GPU, without a GPU, a server or heddle's
 * driver: it listens for `heddle snap` (move/talk/talk.h) and keeps "device memory" that is gone
 * while it has no server. So the command and CRIU can be tested by themselves.
 *
 *     actor LOG [WORD...]
 *
 * Its threads count and change memory while it runs. To LOG it writes "ready PID", each request,
 * and "done N" at the end. It ends with code 7 after STEPS=N steps, and with code 9 if it finds its
 * memory wrong. Words: "no-staging": STAGE is refused; "refuse": it has what cannot be saved;
 * "bad-attach": ATTACH fails; "bad-once=FILE": it fails if the file exists, and removes it;
 * "lost": it dies at CAPTURE.
 *
 * Words of a program that means harm: "keep", "map": it does not give the file back; "smuggle": it
 * writes an image of a process into the file; "other": it writes another snapshot than was asked
 * for; "odd": its name would give orders to a terminal; "silent": it answers nothing but INFO.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "move/file/files.h"
#include "move/file/writer.h"
#include "move/talk/talk.h"

#define MEMORY (5u << 20)
#define STATIC (4u << 20) /* of these do not change */

static struct {
    pthread_mutex_t gate; /* held while the program is */
    bool held;
    enum hed_talk_state state;
    unsigned char *memory; /* of the "device" */
    unsigned char *staged;
    atomic_ulong steps;
    unsigned long last_step; /* that was reached */
    uint8_t session[16];
    char address[256];
    bool no_staging, refuse, bad_attach, die;
    const char *bad_once; /* if this file exists, ATTACH removes it and fails */
    bool keep, map, smuggle, other, odd, silent;
    int log;
} actor = {.gate = PTHREAD_MUTEX_INITIALIZER, .address = "shm:/nowhere"};

__attribute__((format(printf, 1, 2))) static void
write_log(const char *fmt, ...)
{
    char line[512];
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    line[n] = '\n';
    if (write(actor.log, line, (size_t)n + 1) != n + 1)
        _exit(3);
}

static void
hold_actor(void)
{
    if (!actor.held)
        pthread_mutex_lock(&actor.gate);
    actor.held = true;
}

static void
release_actor(void)
{
    actor.state = HED_TALK_RUNNING;
    actor.held = false;
    pthread_mutex_unlock(&actor.gate);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static int
open_home(void *arg, const uint8_t uuid[HED_SNAP_UUID])
{
    const struct hed_talk_request *q = ((void **)arg)[0];
    const int *fds = ((void **)arg)[1];

    for (uint32_t i = 1; i < q->fds; i++) {
        struct hed_snap_super super;

        if (pread(fds[i], &super, sizeof super, 0) == (ssize_t)sizeof super &&
            memcmp(super.uuid, uuid, HED_SNAP_UUID) == 0)
            return fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    }
    return -1;
}

static int
write_snapshot(const struct hed_talk_request *q, const int *fds, const unsigned char *from,
               struct hed_talk_answer *a, struct hed_why *why)
{
    struct hed_snap_about about = {.epoch = q->epoch, .pid = (uint32_t)getpid()};
    const struct hed_snap_how how = {.zstd = q->zstd, .partial = true};
    const struct hed_snap_extent e = {
        .kind = HED_SNAP_DEVICE, .key = 0x200000000000, .size = MEMORY};
    const struct hed_snap_extent image = {
        .kind = HED_SNAP_FILE, .size = 4096, .name = "core-1.img"};
    struct hed_snap_reader *parent = NULL;
    struct hed_snap_writer *w = NULL;
    void *arg[2] = {(void *)q, (void *)fds};
    int err = 0;

    if (actor.other)
        about.epoch = UINT64_MAX;
    memcpy(about.uuid, q->uuid, sizeof about.uuid);
    memcpy(about.session, actor.session, sizeof about.session);
    (void)hed_str_copy(about.program, sizeof about.program, "actor");
    (void)hed_str_copy(about.label, sizeof about.label, q->label);
    if (q->flags & HED_TALK_PARENT)
        err = hed_snap_reader_open(&hed_snap_files_real, fds[1], 0, open_home, arg, &parent, why);
    if (err == 0)
        err = hed_snap_writer_create(&hed_snap_files_real, fds[0], &about, parent, &how, &w, why);
    if (err == 0)
        err = hed_snap_extent_put(w, &e, from);
    if (err == 0 && actor.smuggle)
        err = hed_snap_extent_put(w, &image, from);
    if (err == 0)
        err = hed_snap_writer_finish(w, why);
    a->written = w ? hed_snap_writer_bytes(w) : 0;
    hed_snap_writer_free(w);
    hed_snap_reader_free(parent);
    return err;
}

static int
read_snapshot(const struct hed_talk_request *q, const int *fds, struct hed_why *why)
{
    const struct hed_snap_extent like = {.kind = HED_SNAP_DEVICE, .key = 0x200000000000};
    struct hed_snap_reader *r = NULL;
    void *arg[2] = {(void *)q, (void *)fds};
    uint32_t id;
    int err = hed_snap_reader_open(&hed_snap_files_real, fds[0], HED_SNAP_OPEN_PARTIAL, open_home,
                                   arg, &r, why);

    if (err == 0 && !hed_snap_extent_find(r, &like, &id))
        err = HED_ENOTFOUND;
    for (uint32_t i = 0; err == 0 && i < hed_snap_chunk_count(r, id); i++)
        err = hed_snap_chunk_get(r, id, i, actor.memory + (size_t)i * HED_SNAP_CHUNK,
                                 hed_snap_chunk_length(r, id, i), why);
    hed_snap_reader_free(r);
    return err;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int
wrong_state(struct hed_why *why)
{
    hed_why_set(why, "the actor is %s", hed_talk_state_name(actor.state));
    return HED_ESTATE;
}

static int
play_capture(const struct hed_talk_request *q, const int *fds, struct hed_talk_answer *a,
             struct hed_why *why)
{
    if (actor.state != HED_TALK_RUNNING && q->kind != HED_TALK_OUT)
        return wrong_state(why);
    if (actor.die)
        _exit(5);
    hold_actor();

    int err = 0;

    if (q->kind == HED_TALK_OUT && q->fds == 0) {
        memcpy(actor.staged, actor.memory, MEMORY);
        a->written = MEMORY;
    } else {
        err = write_snapshot(q, fds, actor.memory, a, why);
    }
    if (err != 0) {
        release_actor();
        return err;
    }
    memset(actor.memory, 0, MEMORY);
    actor.state = q->kind == HED_TALK_OUT ? HED_TALK_SWAPPED : HED_TALK_CAPTURED;
    return 0;
}

static int
play_stage(struct hed_why *why)
{
    if (actor.state != HED_TALK_RUNNING)
        return wrong_state(why);
    if (actor.no_staging) {
        hed_why_set(why, "no room");
        return HED_ENOMEM;
    }
    hold_actor();
    memcpy(actor.staged, actor.memory, MEMORY);
    memset(actor.memory, 0, MEMORY);
    actor.state = HED_TALK_PARKED;
    return 0;
}

static int
play_continue(int fd, const struct hed_talk_request *q, const int *fds, struct hed_talk_answer *a,
              struct hed_why *why)
{
    if (actor.state != HED_TALK_PARKED)
        return wrong_state(why);

    unsigned char *kept = malloc(MEMORY);

    memcpy(kept, actor.staged, MEMORY);
    memcpy(actor.memory, actor.staged, MEMORY);
    release_actor();
    a->flags = HED_TALK_MORE;
    (void)hed_talk_answer(fd, a);
    a->flags = 0;

    const int err = q->fds > 0 ? write_snapshot(q, fds, kept, a, why) : 0;

    free(kept);
    return err;
}

/* In a restored process the state is the saved one: captured, or parked at a lost worker. */
static int
play_attach(const struct hed_talk_request *q, const int *fds, struct hed_why *why)
{
    int err = 0;

    if (actor.state != HED_TALK_CAPTURED && actor.state != HED_TALK_PARKED &&
        actor.state != HED_TALK_SWAPPED)
        return wrong_state(why);
    if (actor.bad_attach || (actor.bad_once && unlink(actor.bad_once) == 0)) {
        hed_why_set(why, "the actor was told not to attach");
        return HED_ENOTSUP;
    }
    if (q->fds > 0)
        err = read_snapshot(q, fds, why);
    else
        memcpy(actor.memory, actor.staged, MEMORY);
    if (err != 0)
        return err;
    if (q->address[0])
        (void)hed_str_copy(actor.address, sizeof actor.address, q->address);
    release_actor();
    return 0;
}

static int
play_request(int fd, const struct hed_talk_request *q, const int *fds, struct hed_talk_answer *a,
             struct hed_why *why)
{
    switch (q->kind) {
    case HED_TALK_CAPTURE:
    case HED_TALK_OUT:
        return play_capture(q, fds, a, why);
    case HED_TALK_STAGE:
        return play_stage(why);
    case HED_TALK_CONTINUE:
        return play_continue(fd, q, fds, a, why);
    case HED_TALK_ATTACH:
    case HED_TALK_IN:
        return play_attach(q, fds, why);
    case HED_TALK_MOVE:
        if (actor.state != HED_TALK_RUNNING)
            return wrong_state(why);
        (void)hed_str_copy(actor.address, sizeof actor.address, q->address);
        a->rounds = 3;
        return 0;
    case HED_TALK_PAUSE:
        if (actor.state != HED_TALK_RUNNING)
            return wrong_state(why);
        hold_actor();
        actor.state = HED_TALK_PAUSED;
        return 0;
    case HED_TALK_RESUME:
        if (actor.state != HED_TALK_PAUSED)
            return wrong_state(why);
        release_actor();
        return 0;
    default:
        return 0;
    }
}

static void
describe_actor(struct hed_talk_answer *a)
{
    a->state = actor.state;
    a->devices = 1;
    a->device_bytes = MEMORY;
    a->refusals = actor.refuse;
    memcpy(a->session, actor.session, sizeof a->session);
    (void)hed_str_copy(a->address, sizeof a->address, actor.address);
    (void)hed_str_copy(a->program, sizeof a->program,
                       actor.odd ? "a\033]0;owned\007\302\2332J\n\r../b" : "actor");
}

/* What an honest program does not do with the file that it is given. */
static void
keep_file(const struct hed_talk_request *q, const int *fds)
{
    if (q->fds == 0 || (q->kind != HED_TALK_CAPTURE && q->kind != HED_TALK_CONTINUE))
        return;
    if (actor.keep && fcntl(fds[0], F_DUPFD_CLOEXEC, 3) < 0)
        _exit(6);
    if (actor.map && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) == MAP_FAILED)
        _exit(6);
}

static void *
attend(void *arg)
{
    const int listener = *(const int *)arg;

    for (;;) {
        int fds[HED_TALK_FDS_MAX];
        struct hed_talk_request q;
        struct hed_talk_answer a;
        struct hed_why why = {""};
        int fd;

        if (hed_talk_accept(listener, -1, &fd, NULL) != 0)
            _exit(4);
        if (hed_talk_receive(fd, 10000, &q, fds, &why) == 0) {
            while (actor.silent && q.kind != HED_TALK_INFO)
                pause();
            hed_talk_reply(&a, &q);
            a.err = play_request(fd, &q, fds, &a, &why);
            describe_actor(&a);
            (void)hed_str_copy(a.why, sizeof a.why,
                               actor.refuse && q.kind == HED_TALK_INFO ? "an open capture"
                                                                       : why.text);
            if (q.kind != HED_TALK_INFO)
                write_log("%s %d %s %s", hed_talk_kind_name(q.kind), a.err,
                          hed_talk_state_name(actor.state), actor.address);
            keep_file(&q, fds);
            for (uint32_t i = 0; i < q.fds; i++)
                close(fds[i]);
            (void)hed_talk_answer(fd, &a);
        }
        close(fd);
    }
    return NULL;
}

/* ---- the program's own work ------------------------------------------------------------------ */

static void
check_memory(void)
{
    for (size_t i = 0; i < STATIC; i++) {
        if (actor.memory[i] != (unsigned char)(i * 7 + i / 4096)) {
            write_log("wrong at %zu", i);
            _exit(9);
        }
    }
    for (size_t i = STATIC; i < MEMORY; i++) {
        if (actor.memory[i] != (unsigned char)(actor.last_step + i)) {
            write_log("wrong at %zu in step %lu", i, actor.last_step);
            _exit(9);
        }
    }
}

static void *
count_up(void *arg)
{
    atomic_ulong *n = arg;

    for (;;) {
        atomic_fetch_add(n, 1);
        hed_sleep_ns(HED_NS_PER_MS);
    }
    return NULL;
}

static void
work(unsigned long last)
{
    for (unsigned long step = 1;; step++) {
        pthread_mutex_lock(&actor.gate);
        if (step % 16 == 1)
            check_memory();
        for (size_t i = STATIC; i < MEMORY; i++)
            actor.memory[i] = (unsigned char)(step + i);
        actor.last_step = step;
        pthread_mutex_unlock(&actor.gate);
        printf("step %lu\n", step);
        fflush(stdout);
        if (step == last) {
            write_log("done %lu", step);
            exit(7);
        }
        hed_sleep_ns(HED_NS_PER_MS * 10);
    }
}

static void
take_word(const char *word)
{
    const struct {
        const char *word;
        bool *flag;
    } words[] = {{"no-staging", &actor.no_staging},
                 {"refuse", &actor.refuse},
                 {"bad-attach", &actor.bad_attach},
                 {"lost", &actor.die},
                 {"keep", &actor.keep},
                 {"map", &actor.map},
                 {"smuggle", &actor.smuggle},
                 {"other", &actor.other},
                 {"odd", &actor.odd},
                 {"silent", &actor.silent}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        *words[i].flag |= strcmp(word, words[i].word) == 0;
    if (strncmp(word, "bad-once=", 9) == 0)
        actor.bad_once = word + 9;
}

int
main(int argc, char **argv)
{
    static atomic_ulong counts[2];
    char path[HED_TALK_PATH_MAX];
    struct hed_why why = {""};
    pthread_t t;
    static int listener;
    const char *steps = getenv("STEPS");
    uint64_t last = 0;

    actor.log = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int i = 2; i < argc; i++)
        take_word(argv[i]);
    if (steps && hed_parse_u64(steps, &last) != 0)
        return 2;
    actor.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    actor.staged = calloc(1, MEMORY);
    for (size_t i = 0; i < MEMORY; i++)
        actor.memory[i] = i < STATIC ? (unsigned char)(i * 7 + i / 4096) : (unsigned char)i;
    for (int i = 0; i < 16; i++)
        actor.session[i] = (unsigned char)((unsigned)getpid() >> (i % 4 * 8)) ^ (unsigned char)i;
    if (hed_talk_listen(&listener, path, &why) != 0) {
        fprintf(stderr, "actor: %s\n", why.text);
        return 1;
    }
    pthread_create(&t, NULL, attend, &listener);
    pthread_create(&t, NULL, count_up, &counts[0]);
    pthread_create(&t, NULL, count_up, &counts[1]);
    write_log("ready %d", (int)getpid());
    work(last);
}
