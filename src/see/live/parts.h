/* The parts of see/live/live.h.
 *
 *   live.c     views, and rates between two of them
 *   process.c  what the system knows of a process and its user
 *   servers.c  the thread that asks servers
 *   watch.c    the child that asks programs to measure
 *   json.c     a view as JSON
 */
#pragma once

#include "see/live/live.h"

#define HED_LIVE_USERS 256 /* whose programs root sees */

/* ---- process.c ------------------------------------------------------------------------------- */

/* The user's name, or its number. */
void hed_live_user_name(uid_t user, char out[HED_LIVE_TEXT]);

/* The user of a process; false: there is no such process. */
bool hed_live_user_of(int32_t pid, uid_t *out);

/* How it was started, if it is a process of that user: a number that a program gives for its own
 * may be another's. */
void hed_live_command_of(int32_t pid, uid_t user, char out[HED_LIVE_COMMAND]);

/* ---- servers.c ------------------------------------------------------------------------------- */

/* A client as its server tells. */
struct hed_live_client {
    uint64_t worker;
    int32_t pid; /* 0: on another machine */
    uid_t user;
    bool has_user;
    char program[HED_LIVE_TEXT];
    char peer[HED_LIVE_TEXT];
    char certificate[HED_LIVE_TEXT];
    double idle; /* seconds */
    bool parked;
    uint64_t launches, leased;
    uint64_t failure;
};

struct hed_live_answer {
    struct hed_live_server server;
    bool shown;         /* one of the usual addresses where no server is, is not */
    uint64_t at, limit; /* ns; bytes that a client may have, 0: any */
    size_t count;
    struct hed_live_client *clients; /* owned */
};

struct hed_live_servers;

int hed_live_servers_start(const struct hed_live_how *how, struct hed_live_servers **out);
void hed_live_servers_stop(struct hed_live_servers *s); /* NULL is allowed */
void hed_live_servers_wait(struct hed_live_servers *s, uint64_t ns);

/* Copies the newest answers into out[HED_LIVE_SERVERS]; their clients are the caller's to free.
 * Returns how many. */
size_t hed_live_servers_take(struct hed_live_servers *s, struct hed_live_answer *out);

/* For tests: reads an answer of a server. False: it is none. */
bool hed_live_read_answer(const char *text, size_t size, struct hed_live_answer *out);

/* ---- watch.c --------------------------------------------------------------------------------- */

struct hed_live_watch {
    pid_t child; /* 0: none */
    int life;    /* the child ends when this is closed, and says here that it has asked */
};

int hed_live_watch_start(struct hed_live_watch *w, struct hed_why *why);
void hed_live_watch_wait(const struct hed_live_watch *w, uint64_t ns); /* until all were asked */
void hed_live_watch_check(struct hed_live_watch *w); /* starts it again if it has ended */
void hed_live_watch_stop(struct hed_live_watch *w);
