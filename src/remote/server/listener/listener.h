/* The listener: heddled's main process. It accepts connections, decides which clients it serves,
 * and starts a worker for each new client. See docs/internals/server.md.
 *
 *   accept ──> peer: 32 bytes of preface ──┬─ NEW ─────> gate or hello ──> limits ──> fork a worker
 *   (listen.c)            (peer.c)         ├─ CHANNEL ─> its descriptor goes to the client's worker
 *                                          ├─ STATUS, ... ─> text (status.c, report.c, table.c)
 *                                          └─ EVICT ──> ends a worker
 *                                             these three over unix sockets only
 *
 * The listener has one thread and one epoll, and only the fork itself blocks. It never makes a CUDA
 * call, so that every worker begins as a process in which no driver has been loaded.
 *
 * Invariants:
 * 1. Which places are taken, by which process, and what it has leased is in this process alone; a
 *    worker can write nothing of it. A child begins in hed_child_start() and ends in
 *    hed_child_reap().
 * 2. At most --startups connections have no owner, each for a few times --patience. When one more
 *    arrives, one of the origin that has most is closed. Those that wait for their worker to take
 *    them do not count: a session has at most --channels of them.
 * 3. The server's key and the token are not in this process, so no worker inherits them (gate.h).
 * 4. A worker ends with the listener, however the listener ends (PR_SET_PDEATHSIG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "remote/server/listener/ledger.h"
#include "remote/server/listener/pieces.h"
#include "remote/server/sandbox/group.h"
#include "remote/server/sandbox/sandbox.h"
#include "remote/server/start.h"
#include "remote/wire/conn.h"
#include "remote/wire/transport.h"
#include "remote/wire/window.h"
#include "remote/wire/wire.h"

struct hed_buf;
struct hed_offer;
struct hed_why;
struct hed_worker_status;

#define HED_LISTENERS_MAX 64
#define HED_KILL_MS 1000 /* after SIGTERM, a worker has this long to end before SIGKILL */
#define HED_ALLOW_MAX 64

/* ---- options.c ------------------------------------------------------------------------------- */

struct hed_server_options {
    struct hed_address listen[HED_LISTENERS_MAX];
    uint32_t listen_count;
    char gpu[4096];
    char log[256];
    char images[1024];                    /* "" for none */
    uint64_t images_client, images_total; /* bytes of one client, and of all; 0 for no limit */
    uint64_t images_reserve;              /* bytes that stay free on the disk */
    uint32_t mode;                        /* of the sockets' files */
    bool allow_all;                       /* let every user of this machine in */
    bool show_all;                        /* every user sees all clients, not only its own */
    uint32_t uids[HED_ALLOW_MAX], uid_count;
    uint32_t gids[HED_ALLOW_MAX], gid_count;
    uint64_t memory, host_memory; /* bytes per client; 0 for no limit */
    uint64_t total_memory;        /* of this machine, for all clients together; 0 for no limit */
    uint32_t clients, channels;
    uint32_t spare;       /* workers that are ready before their client comes */
    uint32_t rate;        /* new clients per second; 0 for no limit */
    uint32_t idle_ms;     /* 0 for no limit */
    uint32_t session_ms;  /* 0 for no limit */
    uint32_t kernel_ms;   /* of one kernel; 0 for no limit */
    uint32_t compile_ms;  /* of processor time to compile one kernel; 0 for no limit */
    uint32_t patience_ms; /* how long a connection may take to send its preface */
    uint32_t grace_ms;    /* how long clients may take to finish when the server stops */
    uint32_t park_ms;     /* how long a client that parked its worker may be away; 0: none may */
    uint32_t parked, parked_source; /* such clients, of all and of one origin; 0 for no limit */
    uint32_t guest_ms; /* how long the kernel of a guest may be silent; 0 for any time */
    struct hed_tls tls;
    char token_file[1024]; /* "" if clients need no token */
    char deny_file[1024];  /* certificates that are refused; "" for none */
    uint32_t startups;     /* connections that no worker owns */
    uint32_t per_source;   /* clients of one address, or of one user; 0 for no limit */
    enum hed_sandbox_mode sandbox;
    bool sandbox_given;      /* else it depends on the addresses and the GPU */
    bool lets_kernels_roam;  /* on the CPU GPU they are not confined to its memory */
    uint32_t worker_uids[2]; /* the first and the last user of workers; the first is their group */
    uint32_t worker_cpus;    /* processors of one worker; 0 for no limit */
    uint64_t worker_memory;  /* bytes of private memory of one worker; 0 for no limit */
    bool worker_memory_given;
    char config[1024]; /* the file with options, perhaps after '-'; "" for none */
    bool help;
};

/* Reads one option, `--name value` or `--name=value`. *used is set to the number of words. */
int hed_server_option_take(struct hed_server_options *o, int count, char **words, int *used,
                           struct hed_why *why);
/* Sets an option by its name, without dashes. */
int hed_server_option_set(struct hed_server_options *o, const char *name, const char *value,
                          struct hed_why *why);
/* The value of --config among the words; NULL if there is none. */
const char *hed_server_option_config(int count, char **words);

/* ---- config.c -------------------------------------------------------------------------------- */

/* Reads the file that --config names, and the words after the program's name. Returns an error, and
 * its reason, if they are wrong. */
int hed_server_options_read(struct hed_server_options *o, int count, char **words,
                            struct hed_why *why);
/* The text of the file. `name` is for messages. */
int hed_server_config_parse(struct hed_server_options *o, const char *text, size_t size,
                            const char *name, struct hed_why *why);

/* ---- machine.c ------------------------------------------------------------------------------- */

#define HED_NOT_GIVEN UINT64_MAX /* an option whose default depends on the machine */
/* Bytes of memory that this machine, or the control group of this process, has; 0 if unknown.
 * `root` comes before all paths: "", or a test's own folder. */
uint64_t hed_machine_memory(const char *root);
/* Replaces HED_NOT_GIVEN in the options. */
void hed_memory_defaults(struct hed_server_options *o, const char *root);

/* ---- limits.c -------------------------------------------------------------------------------- */

struct hed_bucket { /* a token bucket: `rate` per second, and as many at once */
    uint32_t rate;
    uint64_t at_ns; /* when the tokens were last counted */
    double tokens;
};
void hed_bucket_init(struct hed_bucket *b, uint32_t rate, uint64_t now_ns);
bool hed_bucket_take(struct hed_bucket *b, uint64_t now_ns); /* a rate of 0 always succeeds */
struct hed_recent { /* tokens that somebody has had lately */
    uint64_t at_ns;
    double count;
};

/* Where connections come from: a user of this machine, a guest, an IPv4 address, a network of
 * IPv6. */
struct hed_origin {
    uint32_t family;
    uint8_t bytes[8];
};

#define HED_ORIGINS 1024
struct hed_server;
struct hed_guest;
struct hed_origin hed_origin_of(const struct sockaddr_storage *at, uid_t uid);
struct hed_origin hed_origin_of_guest(const struct hed_guest *g);
/* How many connections of an origin no worker owns. Two origins may share a number. */
void hed_origin_arrive(struct hed_server *s, const struct hed_origin *o);
void hed_origin_leave(struct hed_server *s, const struct hed_origin *o);
/* May one more client of an origin come, by --rate? Who has had many lately leaves some to
 * others. */
bool hed_origin_may_begin(struct hed_server *s, const struct hed_origin *o, uint64_t now_ns);
uint32_t hed_origin_count(struct hed_server *s, const struct hed_origin *o);

struct hed_peer_user { /* the process at the other end of a unix socket */
    uid_t uid;
    gid_t gid;
    pid_t pid;
};
/* Finds out which user is at the other end, and returns whether the options let that user in. */
bool hed_user_may(const struct hed_server_options *o, int fd, struct hed_peer_user *out);

struct hed_peer;
/* Logs that a client was refused, unless there have been too many such lines. */
void hed_server_refused(struct hed_server *s, const struct hed_peer *p, const char *text);

/* ---- the server ------------------------------------------------------------------------------ */

enum hed_source_kind {
    HED_SOURCE_SIGNALS,
    HED_SOURCE_LISTENER,
    HED_SOURCE_PEER,
    HED_SOURCE_LEASE_SOCKET,
    HED_SOURCE_LINES,
    HED_SOURCE_PROBE,
    HED_SOURCE_KEEPER,
    HED_SOURCE_GUEST
};

struct hed_source { /* the data of an epoll event; the first member of a larger struct */
    enum hed_source_kind kind;
};

struct hed_lines { /* what a worker or a bridge writes to its standard error; see lines.c */
    struct hed_source source;
    int fd; /* -1 if there is none */
    pid_t pid;
    char name[16];   /* the first bytes of a session's number, or a guest's name */
    char text[1000]; /* the line that is not complete */
    size_t count;
    bool cut;               /* the line is longer than that */
    uint64_t budget, at_ns; /* bytes that it may write, and when they were counted */
    uint64_t resume_ns;     /* when it is read again; 0 if it is being read */
    uint64_t dropped;       /* bytes, since that was last said */
};

struct hed_guest { /* a virtual machine; see guests.c */
    struct hed_source source;
    struct hed_guest *next;
    char name[HED_WINDOW_NAME];
    char path[HED_VM_PATH]; /* of the window's file */
    int window;             /* -1 if there is none */
    uint64_t size;          /* bytes of it */
    uint8_t id[16];
    struct hed_pieces pieces;
    int bridge; /* the socket to its bridge; -1 while QEMU is not connected */
    int qemu;   /* the bridge's socket to QEMU, for is_qemu_gone() */
    pid_t pid;  /* the bridge; 0 if there is none */
    struct hed_lines lines;
    struct hed_peer_user user; /* of QEMU, if it is */
    uint64_t since_ns;
};

struct hed_listener {
    struct hed_source source;
    int fd;
    struct hed_guest *guest;    /* of vm: addresses */
    struct hed_address address; /* with the port that the system chose, if the port was 0 */
    dev_t dev;                  /* identify the socket's file, so that only our own is removed */
    ino_t ino;
};

enum hed_peer_state {
    HED_PEER_PREFACE,
    HED_PEER_HELLO,   /* without TLS */
    HED_PEER_GATE,    /* with TLS: it shows who it is */
    HED_PEER_PASSING, /* its worker has not taken the connections before it */
    HED_PEER_WRITING,
    HED_PEER_DRAINING,
    HED_PEER_DEAD
};

struct hed_child;

struct hed_peer { /* a connection that no worker owns yet, or that is being refused */
    struct hed_source source;
    struct hed_peer *next;
    enum hed_peer_state state;
    int fd;
    const struct hed_link *link;
    struct hed_guest *guest; /* that it comes from; NULL for others */
    struct hed_child *child; /* of HED_PEER_PASSING: the worker it is for */
    struct hed_peer_user user;
    struct hed_origin origin;
    char name[64]; /* address, or "local" */
    uint64_t deadline_ns;
    int gate;         /* the answer socket; -1: it is not at a gate */
    bool speaks;      /* of HED_PEER_GATE: its first words under TLS are there */
    uint64_t gate_ns; /* when it came to the gate */
    struct {
        struct hed_preface preface;
        struct hed_hello hello;
    } in;
    size_t got;                  /* bytes of `in` */
    struct hed_conn_who who;     /* known after the gate, like the following */
    struct hed_conn_state *conn; /* NULL: it is not secured */
    unsigned char *out;          /* the bytes being written; owned */
    size_t out_size, out_done;
};

#define HED_OWNER_NAME 64

struct hed_child { /* a worker */
    struct hed_source source;
    pid_t pid;  /* 0 if there is no worker */
    bool spare; /* it has no client yet, so neither what follows `started_wall_ns` */
    char owner[HED_OWNER_NAME]; /* of the folders in its sandbox */
    int control;
    int lease_socket; /* -1 if it may not ask any more */
    struct hed_lines lines;
    const struct hed_link *link;
    struct hed_guest *guest; /* NULL if the client is in none */
    struct hed_peer_user user;
    struct hed_origin origin;
    struct hed_conn_who who;
    char client[HED_OWNER_NAME]; /* who that is: as hed_confine_owner() says */
    char peer[64];               /* address, or "local" */
    uint8_t session[16];
    uint64_t started_ns, started_wall_ns;
    struct hed_worker_status *status;
    uint32_t session_ms; /* that it may take; 0 for no limit */
    bool evicted;        /* killed by --evict or a limit */
    bool deserted;       /* the same, because its client died while it was parked */
    uint64_t kill_ns;    /* of one that was told so: when it is killed; 0: not */
    uint64_t behind_ns;  /* the round in which it could not take another connection */
};

struct hed_server {
    const struct hed_server_options *options; /* `own`; SIGHUP changes it */
    struct hed_server_options own;
    char **words; /* of the command line */
    int word_count;
    int epoll, signals;
    struct hed_source signal_source;
    struct hed_listener listeners[HED_LISTENERS_MAX];
    uint32_t listener_count;
    struct hed_guest *guests; /* owned */
    bool deaf;                /* out of descriptors: accept nothing until deaf_until_ns */
    uint64_t deaf_until_ns;

    struct hed_peer *peers;        /* oldest first */
    uint32_t peer_count;           /* those that are neither dead nor being passed on */
    uint32_t origins[HED_ORIGINS]; /* the same, by origin */
    uint64_t origin_seed;
    int keeper, next_keeper; /* -1: there is none */
    struct hed_source keeper_source;
    uint64_t keeper_ns;                    /* when it was last started */
    struct hed_recent recent[HED_ORIGINS]; /* of `rate`, by origin */
    struct hed_bucket rate, quiet;         /* quiet limits the log lines about refusals */
    uint64_t unsaid;                       /* refusals that have not been logged */

    const char *images;  /* the folder if it exists, else "" */
    const char *kernels; /* the same, for compiled kernels; only if there is a sandbox */
    struct hed_worker_plan plan;
    struct hed_sandbox sandbox;  /* of all workers; no steps: they have none */
    char groups[HED_GROUP_PATH]; /* the folder of workers' control groups; "" for none */
    struct hed_ledger ledger;
    struct hed_offer *offers; /* offers.h; owned */
    int notice;               /* the descriptor of the ledger's notice; -1 for none */
    int probe;                /* -1 when it is known what there is to lease */
    struct hed_source probe_source;
    struct hed_child children[HED_LEDGER_WORKERS];
    uint32_t child_count, spare_count; /* those that have a client, and those that have none */
    char spare_owner[HED_OWNER_NAME];  /* of the next spares; "" if it is not known yet */
    uint64_t spare_ns;                 /* when the next may be started */
    uint32_t spare_failures;           /* that ended before they were ready, one after another */
    uint32_t resting;     /* workers that wrote too much, and are not read for a while */
    uint64_t pressure_ns; /* when to look at the memory of workers again */
    uint64_t parked_ns;   /* when to look at parked sessions again */
    uint64_t space_ns;    /* when to look at the folders again */
    pid_t space;          /* the process that does; 0 if there is none */

    uint64_t started_ns;
    uint64_t accepted, refused, served;

    bool stopping, killed;
    bool useless;     /* it stops, because no worker could use the GPU */
    uint64_t stop_ns; /* when the next, harder step of stopping is due */
};

/* Serves until it is told to stop. `words` are those that the options were read from. Returns 0, or
 * an error and its reason if the server could not start. */
int hed_server_run(const struct hed_server_options *o, int count, char **words,
                   struct hed_why *why);

/* The server can be used: tells the log and systemd. */
void hed_server_ready(const struct hed_server *s);
/* Stops; another time, it stops harder. */
void hed_server_stop(struct hed_server *s, const char *why);

/* ---- reload.c -------------------------------------------------------------------------------- */

/* Reads the options again, and applies what can change. */
void hed_server_reload(struct hed_server *s);

/* ---- listen.c -------------------------------------------------------------------------------- */

int hed_listen_open(struct hed_server *s, struct hed_why *why);
void hed_listen_close(struct hed_server *s); /* also removes the sockets' files */
void hed_listen_accept(struct hed_server *s, struct hed_listener *l);
void hed_listen_pause(struct hed_server *s, bool pause);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Takes ownership of the descriptor. `at` is NULL for a connection from a guest. */
void hed_peer_add(struct hed_server *s, int fd, const struct hed_link *link,
                  const struct sockaddr_storage *at, struct hed_guest *guest);
void hed_peer_ready(struct hed_server *s, struct hed_peer *p);
void hed_peer_close(struct hed_server *s, struct hed_peer *p); /* the sweep frees it */
/* Frees the dead peers and closes the late ones; called between two rounds of the loop. Returns
 * when the next peer will be late, or UINT64_MAX. */
uint64_t hed_peers_sweep(struct hed_server *s, uint64_t now_ns);
void hed_peers_close(struct hed_server *s);

/* ---- gates.c --------------------------------------------------------------------------------- */

/* A client is to begin TLS. One that sends nothing needs no gate; one that has sent its first words
 * waits for a gate, and its time counts from there. */
void hed_gates_await(struct hed_server *s, struct hed_peer *p);
/* Sends connections that wait to gates, as long as there are any. */
void hed_gates_fill(struct hed_server *s, uint64_t now_ns);

/* ---- operator.c ------------------------------------------------------------------------------ */

/* Does what an operator asks for that is more than a question, and adds the answer to `out`. If it
 * adds nothing, a worker has the connection and answers. */
bool hed_operator_is(const struct hed_peer *p); /* the server's own user, or root */
void hed_operator_heard(struct hed_server *s, const struct hed_peer *p, struct hed_buf *out);

/* ---- guests.c -------------------------------------------------------------------------------- */

/* Makes what a guest has before its QEMU runs. The server listens on the guest's socket already, so
 * that no other server does. */
int hed_guest_create(struct hed_server *s, const struct hed_address *a, struct hed_guest **out,
                     struct hed_why *why);
void hed_guests_close(struct hed_server *s); /* when no worker is left */
/* QEMU has connected: starts a bridge. Takes ownership of the descriptor. */
void hed_guest_begin(struct hed_server *s, struct hed_guest *g, int qemu);
void hed_guest_ready(struct hed_server *s, struct hed_guest *g); /* the bridge says something */
/* Pieces of the window, for a worker. They return 0 and do nothing if there is no guest. */
uint64_t hed_guest_take_piece(struct hed_guest *g, uint32_t worker, uint64_t bytes);
void hed_guest_give_piece(struct hed_guest *g, uint32_t worker, uint64_t offset, uint64_t bytes);
void hed_guest_forget(struct hed_guest *g, uint32_t worker); /* a worker is gone */
void hed_guests_reaped(struct hed_server *s, pid_t pid);     /* this process is gone */
/* Frees some pages of workers that are gone. False if there are none; else it is called again after
 * others have had their turn. */
bool hed_guests_clear(struct hed_server *s);

/* ---- keeper.c -------------------------------------------------------------------------------- */

/* Starts the process that has the key (remote/server/gate), which reads its files now. It is used,
 * instead of the one before it, after hed_keeper_replace(), which does nothing if none was
 * prepared. */
int hed_keeper_prepare(struct hed_server *s, const struct hed_server_options *o,
                       struct hed_why *why);
void hed_keeper_replace(struct hed_server *s);
void hed_keeper_ready(struct hed_server *s);
void hed_keeper_close(struct hed_server *s);
/* Sends a connection to a gate, and returns the socket for the answer, or an error. */
int hed_keeper_ask(struct hed_server *s, const struct hed_peer *p);
/* Keeps the secrets of a connection in memory that is empty in every child, because other clients'
 * code runs there. NULL if there is no memory. */
struct hed_conn_state *hed_state_keep(const struct hed_conn_state *state);
void hed_state_forget(struct hed_conn_state *kept); /* NULL is allowed */
/* Does the server need one? */
bool hed_keeper_wanted(const struct hed_server_options *o);

/* ---- child.c --------------------------------------------------------------------------------- */

/* Starts a worker for a new client, or gives it a spare. The caller closes the descriptor, of which
 * the worker has a copy. */
int hed_child_start(struct hed_server *s, const struct hed_peer *p, struct hed_why *why);
/* The parts of it that spares need: a free place, or NULL; how many places may be used; the fork,
 * of a spare if p is NULL, which returns a process or -1; noting in a worker who its client is. */
struct hed_child *hed_child_place(struct hed_server *s);
uint32_t hed_child_places(const struct hed_server *s);
pid_t hed_child_fork(struct hed_server *s, const struct hed_peer *p, struct hed_child *c);
void hed_child_meet(struct hed_server *s, const struct hed_peer *p, struct hed_child *c);
void hed_child_log(const struct hed_child *c, const char *what);
/* The worker whose session a further connection belongs to. HED_ENOTFOUND if there is no such
 * session, HED_EACCESS if it is another user's. */
int hed_child_find(struct hed_server *s, const struct hed_peer *p, struct hed_child **out);
/* Passes the connection to it; the caller keeps its own descriptor. HED_ETIME if the worker must
 * take earlier ones first. */
int hed_child_pass(const struct hed_child *c, const struct hed_peer *p);
void hed_child_reap(struct hed_server *s);
void hed_child_signal(struct hed_server *s, int signal); /* all workers */

/* Ends a client. False if no worker has that number. dismiss lets the worker tell it why first. */
bool hed_child_evict(struct hed_server *s, uint64_t worker);
bool hed_child_dismiss(struct hed_server *s, uint64_t worker);
/* Ends the clients whose time is over (--session). Returns when the next one is due, or
 * UINT64_MAX. */
uint64_t hed_children_expire(struct hed_server *s, uint64_t now_ns);
/* In a new process: closes all descriptors but the given and the first three, and resets the
 * signals. */
void hed_child_prepare(int *kept, size_t count);

/* ---- parked.c -------------------------------------------------------------------------------- */

/* Is there a place for one more client of this origin? If all are taken, perhaps ends a parked
 * session of another. */
bool hed_parked_make_room(struct hed_server *s, const struct hed_origin *newcomer);
/* Ends parked sessions if there are too many, and those whose clients have died. Returns when to
 * look again, or UINT64_MAX. */
uint64_t hed_parked_look(struct hed_server *s, uint64_t now_ns);

/* ---- spare.c --------------------------------------------------------------------------------- */

#define HED_SPARE_BYTES (UINT64_C(512) << 20) /* of a GPU's memory, for the context of each */

/* Begins to keep spares, or takes over changed options: what clients can lease is less by what the
 * spares may take, and spares that were started with other options end. */
void hed_spares_begin(struct hed_server *s);
/* Starts and ends spares so that there are as many as there should be. Returns when to look again,
 * or UINT64_MAX. */
uint64_t hed_spares_look(struct hed_server *s, uint64_t now_ns);
/* Could this client use a spare, if one were ready that has the right folders? */
bool hed_spare_fits(const struct hed_server *s, const struct hed_peer *p);
/* Gives the client to a spare that is ready for it; false if there is none. */
bool hed_spare_take(struct hed_server *s, const struct hed_peer *p);
void hed_spare_ended(struct hed_server *s, const struct hed_child *c, int how);
/* Ends all spares. Unless the server stops, the next ones are started later: `wait_ms`. Returns how
 * many there were. */
uint32_t hed_spares_end(struct hed_server *s, uint32_t wait_ms);
bool hed_spare_is_ready(const struct hed_child *c);

/* ---- pressure.c ------------------------------------------------------------------------------ */

/* Ends the worker that uses most memory if all together use more than --total-memory. Returns when
 * to look again, or UINT64_MAX. */
uint64_t hed_pressure_look(struct hed_server *s, uint64_t now_ns);
/* Bytes that a worker uses, without what it shares and another has made; 0 if it is gone. */
uint64_t hed_pressure_of(const struct hed_server *s, const struct hed_child *c);

/* ---- space.c --------------------------------------------------------------------------------- */

/* Now and then starts a process that removes the oldest images and kernels of all clients if they
 * take more than --images-total. Returns when to look again, or UINT64_MAX. */
uint64_t hed_space_look(struct hed_server *s, uint64_t now_ns);
/* The work of that process, for tests as well. Kernels are in folders of clients only. */
void hed_space_sweep(const char *images, const char *kernels, uint64_t most);

/* ---- lease_socket.c -------------------------------------------------------------------------- */

void hed_lease_socket_open(struct hed_server *s, struct hed_child *c);
void hed_lease_socket_ready(struct hed_server *s, struct hed_child *c);
void hed_lease_socket_drop(int fd); /* closes what a worker has sent, without waiting; or -1 */
void hed_lease_socket_close(struct hed_server *s, struct hed_child *c);
int hed_probe_start(struct hed_server *s);
void hed_probe_ready(struct hed_server *s);

/* ---- lines.c --------------------------------------------------------------------------------- */

/* Makes the pipe, and returns the worker's end of it, or -1. */
int hed_lines_open(struct hed_lines *l);
/* When the process runs: reads what it writes. `name` is shown with each line. */
void hed_lines_begin(struct hed_server *s, struct hed_lines *l, pid_t pid, const char *name);
void hed_lines_ready(struct hed_server *s, struct hed_lines *l);
/* Reads those again that wrote too much and have waited. Returns when the next one is due, or
 * UINT64_MAX. */
uint64_t hed_lines_resume(struct hed_server *s, uint64_t now_ns);
/* The worker has ended: takes the rest. */
void hed_lines_end(struct hed_server *s, struct hed_lines *l);

/* ---- confine.c ------------------------------------------------------------------------------- */

/* Decides on the sandbox of workers, and says what it is. An error if the options insist on more
 * than this machine can do. */
int hed_confine_begin(struct hed_server *s, struct hed_why *why);
/* Takes the limits of workers from the options, for those that start from now on. */
void hed_confine_limits(struct hed_server *s);
bool hed_confine_has(const struct hed_server *s, enum hed_sandbox_step step);
void hed_confine_write(const struct hed_server *s, struct hed_buf *b); /* for the status */
/* Makes the control group of the worker that is about to start at this place. */
int hed_confine_group(struct hed_server *s, uint32_t place, struct hed_why *why);
/* The worker at this place has ended: removes its group. True if the kernel killed it because of
 * its memory. */
bool hed_confine_ended(struct hed_server *s, uint32_t place);
/* The name of the folders in which a client's images and kernels are stored. */
void hed_confine_owner(const struct hed_peer *p, char *out, size_t size);
/* In a new worker with one thread: loads what it needs, and enters the sandbox, in which it has the
 * folders of this owner. `place` is its index among the children. After an error the process must
 * end. */
int hed_confine_worker(const struct hed_server *s, const char *owner, uint32_t place,
                       struct hed_worker_start *start, struct hed_why *why);

/* ---- status.c -------------------------------------------------------------------------------- */

#define HED_STATUS_MAX (8u << 20) /* bytes of the complete text */
/* Clients are shown that this user may see; NULL: all. */
void hed_status_write(const struct hed_server *s, const uid_t *viewer, struct hed_buf *out);
void hed_status_list(const struct hed_server *s, const uid_t *viewer,
                     struct hed_buf *out); /* table.c */
bool hed_status_shows(const struct hed_child *c, const uid_t *viewer);
void hed_status_report(const struct hed_server *s, const uid_t *viewer,
                       struct hed_buf *out); /* report.c */
/* "12 s", "5 min", "3 h", "8 d"; "20.0 GiB", "512 MiB". */
#define HED_AGE_TEXT 32
const char *hed_age_text(uint64_t ns, char out[HED_AGE_TEXT]);
#define HED_SIZE_TEXT 32
const char *hed_size_text(uint64_t bytes, char out[HED_SIZE_TEXT]);
