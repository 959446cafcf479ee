/* The thread that asks servers how they are, and the reading of their answers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/str.h"
#include "base/thread.h"
#include "remote/remote.h"
#include "see/live/parts.h"

#define CLIENTS_MAX 4096
#define ROOTS_SOCKET "shm:/run/heddle/heddle.sock"

/* It outlives its owner while a server keeps the thread waiting. */
struct hed_live_servers {
    struct hed_lock lock; /* guards what follows */
    pthread_cond_t news;
    bool stop;
    int users;       /* the owner and the thread */
    unsigned rounds; /* every server was asked so often */
    size_t count;
    struct {
        char address[HED_LIVE_COMMAND]; /* "": the usual one; constant */
        bool given;                     /* constant */
        struct hed_live_answer answer;
    } at[HED_LIVE_SERVERS];
    uint64_t every;
};

/* ---- an answer ------------------------------------------------------------------------------- */

static bool
is_key(const char *key, const char *name)
{
    return strcmp(key, name) == 0;
}

/* 0: none, or no number that a process has. */
static int32_t
read_pid(struct hed_json *j)
{
    const uint64_t pid = hed_json_number(j);

    return pid <= INT32_MAX ? (int32_t)pid : 0;
}

static void
read_user(struct hed_json *j, struct hed_live_client *c)
{
    const bool none = hed_json_null(j);
    const uint64_t user = none ? 0 : hed_json_number(j);

    c->has_user = !none && user < UINT32_MAX;
    c->user = c->has_user ? (uid_t)user : 0;
}

static void
read_client(struct hed_json *j, struct hed_live_client *c)
{
    char key[32];

    (void)hed_json_enter(j, '{');
    while (hed_json_key(j, key, sizeof key)) {
        if (is_key(key, "worker")) {
            c->worker = hed_json_number(j);
        } else if (is_key(key, "pid")) {
            c->pid = read_pid(j);
        } else if (is_key(key, "uid")) {
            read_user(j, c);
        } else if (is_key(key, "program")) {
            hed_json_text(j, c->program, sizeof c->program);
        } else if (is_key(key, "peer")) {
            hed_json_text(j, c->peer, sizeof c->peer);
        } else if (is_key(key, "certificate")) {
            hed_json_text(j, c->certificate, sizeof c->certificate);
        } else if (is_key(key, "idle_seconds")) {
            c->idle = hed_json_real(j);
        } else if (is_key(key, "parked")) {
            c->parked = hed_json_bool(j);
        } else if (is_key(key, "launches")) {
            c->launches = hed_json_number(j);
        } else if (is_key(key, "leased_total_bytes")) {
            c->leased = hed_json_number(j);
        } else if (is_key(key, "failure")) {
            c->failure = hed_json_number(j);
        } else {
            hed_json_skip(j);
        }
    }
}

/* Reads as many as there is room for, and passes over the rest. */
static void
read_clients(struct hed_json *j, struct hed_live_answer *out)
{
    (void)hed_json_enter(j, '[');
    while (hed_json_next(j)) {
        struct hed_live_client *more = out->count < CLIENTS_MAX
                                           ? realloc(out->clients, (out->count + 1) * sizeof *more)
                                           : NULL;

        if (!more) {
            hed_json_skip(j);
            continue;
        }
        out->clients = more;
        memset(&more[out->count], 0, sizeof *more);
        read_client(j, &more[out->count++]);
    }
    out->server.clients = out->count;
}

static void
read_limits(struct hed_json *j, struct hed_live_answer *out)
{
    char key[32];

    (void)hed_json_enter(j, '{');
    while (hed_json_key(j, key, sizeof key)) {
        if (is_key(key, "memory"))
            out->limit = hed_json_number(j);
        else
            hed_json_skip(j);
    }
}

bool
hed_live_read_answer(const char *text, size_t size, struct hed_live_answer *out)
{
    struct hed_json j = hed_json_over(text, size);
    struct hed_live_server *s = &out->server;
    char key[32];

    (void)hed_json_enter(&j, '{');
    while (hed_json_key(&j, key, sizeof key)) {
        if (is_key(key, "pid"))
            s->pid = read_pid(&j);
        else if (is_key(key, "uptime_seconds"))
            s->uptime = hed_json_real(&j);
        else if (is_key(key, "gpu"))
            hed_json_text(&j, s->gpu, sizeof s->gpu);
        else if (is_key(key, "limits"))
            read_limits(&j, out);
        else if (is_key(key, "refused"))
            s->refused = hed_json_number(&j);
        else if (is_key(key, "clients_ever"))
            s->clients_ever = hed_json_number(&j);
        else if (is_key(key, "stopping"))
            s->stopping = hed_json_bool(&j);
        else if (is_key(key, "clients"))
            read_clients(&j, out);
        else
            hed_json_skip(&j);
    }
    return !j.bad && s->pid > 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void
ask_one(const char *address, bool given, struct hed_live_answer *out)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_why why = {""};
    struct hed_buf text;
    int err;

    memset(out, 0, sizeof *out);
    hed_buf_init(&text, HED_ASK_ANSWER_MAX);
    err = hed_ask(*address ? address : NULL, &question, &text, &why);
    out->at = hed_now_ns();
    (void)hed_str_copy(out->server.address, sizeof out->server.address,
                       *address ? address : "the usual address");
    if (err == 0 && !hed_live_read_answer(hed_buf_cstr(&text), text.size, out)) {
        hed_why_set(&why, "it refuses to answer, or is no server");
        err = HED_EFORMAT;
    }
    if (err)
        (void)hed_str_copy(out->server.why, sizeof out->server.why, why.text);
    out->shown = given || err == 0;
    hed_buf_fini(&text);
}

/* Locked on entry; unlocks. */
static void
leave_servers(struct hed_live_servers *s)
{
    const bool last = --s->users == 0;

    hed_unlock(&s->lock);
    if (!last)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->at[i].answer.clients);
    (void)pthread_cond_destroy(&s->news);
    hed_lock_fini(&s->lock);
    free(s);
}

static void *
ask_for_ever(void *arg)
{
    struct hed_live_servers *s = arg;
    struct hed_live_answer answer;

    hed_lock(&s->lock);
    while (!s->stop) {
        const uint64_t next = hed_now_ns() + s->every;

        for (size_t i = 0; i < s->count && !s->stop; i++) {
            hed_unlock(&s->lock);
            ask_one(s->at[i].address, s->at[i].given, &answer);
            hed_lock(&s->lock);
            free(s->at[i].answer.clients);
            s->at[i].answer = answer;
        }
        s->rounds++;
        (void)pthread_cond_broadcast(&s->news);
        while (!s->stop && hed_now_ns() < next)
            (void)hed_lock_wait(&s->lock, &s->news, next);
    }
    leave_servers(s);
    return NULL;
}

static void
choose_servers(struct hed_live_servers *s, const struct hed_live_how *how)
{
    for (size_t i = 0; i < how->server_count && s->count < HED_LIVE_SERVERS; i++, s->count++) {
        struct hed_live_answer *a = &s->at[s->count].answer;

        (void)hed_str_copy(s->at[s->count].address, sizeof s->at[0].address, how->servers[i]);
        s->at[s->count].given = true;
        (void)hed_str_copy(a->server.address, sizeof a->server.address, how->servers[i]);
        (void)hed_str_copy(a->server.why, sizeof a->server.why, "it has not answered yet");
        a->shown = true;
    }
    if (s->count)
        return;
    /* One's own server, and the machine's. */
    s->count = geteuid() == 0 ? 1 : 2;
    (void)hed_str_copy(s->at[s->count - 1].address, sizeof s->at[0].address, ROOTS_SOCKET);
}

int
hed_live_servers_start(const struct hed_live_how *how, struct hed_live_servers **out)
{
    struct hed_live_servers *s = calloc(1, sizeof *s);
    int err;

    if (!s)
        return HED_ENOMEM;
    s->every = how->every;
    s->users = 2;
    choose_servers(s, how);
    hed_lock_init(&s->lock, HED_RANK_LIVE);
    (void)pthread_cond_init(&s->news, NULL);
    err = hed_thread_detached(NULL, ask_for_ever, s);
    if (err) {
        hed_lock(&s->lock);
        s->users = 1;
        leave_servers(s);
        return err;
    }
    *out = s;
    return 0;
}

void
hed_live_servers_stop(struct hed_live_servers *s)
{
    if (!s)
        return;
    hed_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->news);
    leave_servers(s);
}

void
hed_live_servers_wait(struct hed_live_servers *s, uint64_t ns)
{
    const uint64_t end = hed_now_ns() + ns;

    hed_lock(&s->lock);
    while (s->rounds == 0 && hed_now_ns() < end)
        (void)hed_lock_wait(&s->lock, &s->news, end);
    hed_unlock(&s->lock);
}

size_t
hed_live_servers_take(struct hed_live_servers *s, struct hed_live_answer *out)
{
    size_t count = 0;

    hed_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_live_answer *a = &s->at[i].answer;

        if (!a->shown)
            continue;
        out[count] = *a;
        out[count].clients = a->count ? malloc(a->count * sizeof *a->clients) : NULL;
        if (out[count].clients)
            memcpy(out[count].clients, a->clients, a->count * sizeof *a->clients);
        else
            out[count].count = 0;
        count++;
    }
    hed_unlock(&s->lock);
    return count;
}
