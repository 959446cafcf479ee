/* What the heddle command and a program that uses CUDA say to each other about snapshots.
 *
 * Every program with a remote GPU listens on a socket of its own, "snap-PID" in the folder where
 * processes meet (base/meeting.h). The command connects, sends one request, gets its answer, and
 * hangs up. Long requests are answered several times: all answers but the last have
 * HED_TALK_MORE.
 *
 *     the command                                   the program (a thread of ours in it)
 *
 *     hed_talk_open                                 hed_talk_listen, hed_talk_accept
 *     hed_talk_send   -- request, descriptors -->   hed_talk_receive
 *     hed_talk_wait   <-- answer ... answer --      hed_talk_answer
 *     close                                         close
 *
 * Requests and answers are structs of one size (SOCK_SEQPACKET keeps their boundaries); both sides
 * run on one machine and must be of one version. Each side checks what it gets: size, magic,
 * version, kind, number of descriptors, and that every text ends.
 *
 * Only the program's own user and root may connect (SO_PEERCRED). The socket is saved with the
 * program by CRIU, so a restored program listens at the same path.
 *
 * The other way round, a program that has lost its server asks its parent, `heddle run --ckpt`, for
 * help, if that listens at "rescue-PID". It waits until it is killed, to go on from a snapshot, or
 * until it is answered that it must do without, or the parent is gone.
 *
 *     the program                                   its parent
 *
 *     hed_talk_open_rescue                          hed_talk_listen_rescue, hed_talk_accept
 *     hed_talk_send   -- RESCUE -->                 hed_talk_receive
 *     hed_talk_wait   <-- a refusal, or death --    hed_talk_answer
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_why;

#define HED_TALK_MAGIC 0x4b4c4148u /* "HALK" in the order of its bytes */
#define HED_TALK_VERSION 2
#define HED_TALK_FDS_MAX \
    160 /* descriptors of one request: a file, its parent, the parent's homes */
#define HED_TALK_SAVED "saved-" /* and the PID: a file beside the sockets (move/command/saved.h) */
#define HED_TALK_PATH_MAX 108   /* bytes of a socket's path, the 0 included; the kernel's limit */

/* What is asked. Numbers are never reused.
 *
 * "held": no call of the program is inside the driver, and new ones wait. A request fails with
 * HED_ESTATE if the program is not in the state that it needs.
 */
enum hed_talk_kind {
    HED_TALK_INFO = 1,     /* Any state. Nothing is stopped. */
    HED_TALK_CAPTURE = 2,  /* Hold, drain, write all memory to the file, leave the server for good.
                            * The program stays held. Needs: running. Descriptors: the file, then
                            * its parent and the parent's homes. */
    HED_TALK_STAGE = 3,    /* Hold, drain, copy what changed into free device memory, and leave the
                            * worker parked. The program stays held. HED_ENOMEM: there is no room
                            * for it, nothing was changed. Needs: running. Descriptors: the parent
                            * and its homes. */
    HED_TALK_CONTINUE = 4, /* Return to the parked worker and release; the first answer says so.
                            * Then write the staging copy to the file. Needs: parked. Descriptors:
                            * as in CAPTURE. Without any: only return and release, drop the staging
                            * copy. */
    HED_TALK_ATTACH = 5,  /* Arrive at `address` with memory from the file, release. Needs: held and
                            * without a server. Descriptors: the file and its homes. Without any:
                            * the memory that OUT left in this process. */
    HED_TALK_OUT = 6,     /* As CAPTURE, into memory of the program's machine if there is no file.
                            * Needs: running or paused. Descriptors: none, or as in CAPTURE. */
    HED_TALK_IN = 7,      /* As ATTACH. Needs: out. */
    HED_TALK_MOVE = 8,    /* Move to `address` while the program runs; released at the end, also
                            * after a failure. Needs: running. */
    HED_TALK_PAUSE = 9,   /* Hold, drain. Needs: running. */
    HED_TALK_RESUME = 10, /* Release. Needs: paused. */
    HED_TALK_RESCUE = 11, /* From the program to its parent: the server is lost, for the reason in
                           * `label`; `uuid` is its session, `address` the server. */
};
#define HED_TALK_KIND_LAST 11

enum hed_talk_flag {
    HED_TALK_PARENT = 1, /* request: the descriptors after the file are a parent and its homes */
    HED_TALK_MORE = 2,   /* answer: not the last one */
    HED_TALK_VERIFY = 4, /* request: read memory back after it was filled, and compare hashes */
    HED_TALK_RETURN = 8, /* request OUT without a file: once the peer has hung up, the program tries
                          * to come back by itself until there is room for it */
    HED_TALK_FLAGS_KNOWN = 15,
};

/* Where a program stands. */
enum hed_talk_state {
    HED_TALK_RUNNING = 0,
    HED_TALK_PAUSED = 1,   /* held, with its server */
    HED_TALK_PARKED = 2,   /* held, its worker waits for it */
    HED_TALK_CAPTURED = 3, /* held, without a server; its memory is in a file that it was given */
    HED_TALK_SWAPPED = 4,  /* held, without a server; its memory is in host memory */
    HED_TALK_LOST = 5,     /* its server is lost: nothing is possible any more */
};
#define HED_TALK_STATE_LAST 5

/* Kinds of objects that are counted. */
enum hed_talk_object {
    HED_TALK_CONTEXTS,
    HED_TALK_STREAMS,
    HED_TALK_EVENTS,
    HED_TALK_MODULES,
    HED_TALK_FUNCTIONS,
    HED_TALK_ALLOCATIONS,
    HED_TALK_PHYSICALS,
    HED_TALK_ARRAYS,
    HED_TALK_TEXTURES, /* and surfaces */
    HED_TALK_POOLS,
    HED_TALK_GRAPHS, /* and executable graphs */
    HED_TALK_OBJECTS
};

/* What a move does while the program is held, in this order. */
enum hed_talk_part {
    HED_TALK_STOP,       /* until its calls have returned */
    HED_TALK_DRAIN,      /* until its own work on the GPU is done */
    HED_TALK_SETTLE,     /* the old worker gives back what is not taken along */
    HED_TALK_ADJUST,     /* contexts and memory that have changed since the last round */
    HED_TALK_HASH,       /* which memory has changed */
    HED_TALK_COPY,       /* device memory, from worker to worker */
    HED_TALK_REST,       /* arrays, variables, physical memory: listed, read and written */
    HED_TALK_TOOLS,      /* our own kernels and memory are dropped */
    HED_TALK_CONNECTION, /* the connection */
    HED_TALK_REMADE,     /* contexts */
    HED_TALK_MAPPED,     /* pinned and physical memory */
    HED_TALK_CODE,       /* libraries, functions, addresses of variables */
    HED_TALK_QUEUES,     /* streams and events */
    HED_TALK_IMAGES,     /* arrays, textures, surfaces, conditions of graphs */
    HED_TALK_VERIFIED,   /* memory is read back, if that was asked for */
    HED_TALK_LEAVE,      /* the last answer of the new worker; the old one is left */
    HED_TALK_PARTS
};

struct hed_talk_request {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;        /* enum hed_talk_kind */
    uint32_t bytes;       /* of this struct */
    uint32_t flags;       /* HED_TALK_PARENT, HED_TALK_VERIFY, HED_TALK_RETURN */
    uint32_t fds;         /* descriptors that come with it; hed_talk_send() sets it */
    uint32_t deadline_ms; /* for holding and draining; 0: the program's choice */
    uint8_t uuid[16];     /* CAPTURE, CONTINUE, OUT: of the new snapshot; RESCUE: the session */
    uint64_t epoch;       /* of the new snapshot */
    int32_t zstd;         /* level; 0: no packing */
    uint32_t budget_ms;   /* MOVE: how long the last round may take; 0: the program's choice */
    char address[256];    /* of a server; "": the present or last one; RESCUE: the last one */
    char label[128];      /* of the new snapshot, for people; RESCUE: the reason */
};

struct hed_talk_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;  /* the request's */
    uint32_t bytes; /* of this struct */
    uint32_t flags; /* HED_TALK_MORE */
    int32_t err;    /* 0 or HED_E...; never 0 < err */
    uint32_t state; /* enum hed_talk_state, after the request */
    uint32_t pid;   /* as the program sees it */
    uint32_t devices;
    uint64_t device_bytes;              /* device memory in use, as far as it would be saved */
    uint64_t host_bytes;                /* of swapped memory in the program's process */
    uint64_t written;                   /* bytes read, written or moved by this request */
    uint64_t same;                      /* bytes that the parent had already */
    uint64_t stall_ns;                  /* how long the program was held by this request */
    uint64_t hold_ns;                   /* of these, until it was held and drained */
    uint64_t total_ns;                  /* of the whole request */
    uint64_t last_round;                /* MOVE: bytes that were moved while the program was held */
    uint32_t rounds;                    /* MOVE */
    uint32_t refusals;                  /* INFO: objects that cannot be saved; `why` names them */
    uint32_t objects[HED_TALK_OBJECTS]; /* INFO */
    uint32_t pad;
    uint64_t parts_ns[HED_TALK_PARTS]; /* MOVE: what stall_ns was spent on */
    uint64_t heap_base, heap_size;     /* the range of device addresses */
    uint8_t session[16];               /* the same for all snapshots of this program */
    char address[256];                 /* of the server */
    char program[256];
    char device[96]; /* name of the first device */
    char why[512];   /* for people; "" if there is nothing to say */
};

_Static_assert(sizeof(struct hed_talk_request) == 440, "no gaps");
_Static_assert(sizeof(struct hed_talk_answer) == 1432, "no gaps");

/* Fill in the beginning; the rest is zero. */
void hed_talk_ask(struct hed_talk_request *q, enum hed_talk_kind kind);
void hed_talk_reply(struct hed_talk_answer *a, const struct hed_talk_request *to);

/* Check everything that a struct says about itself. HED_EFORMAT, HED_EVERSION. n is its size as it
 * arrived. Any bytes are safe. */
int hed_talk_check_request(const void *bytes, size_t n, size_t fds, struct hed_talk_request *out,
                           struct hed_why *why);
int hed_talk_check_answer(const void *bytes, size_t n, struct hed_talk_answer *out,
                          struct hed_why *why);

/* "capture", "paused", "graphs", "hash"; "?" for numbers that are none. */
const char *hed_talk_kind_name(unsigned kind);
const char *hed_talk_state_name(unsigned state);
const char *hed_talk_object_name(unsigned object);
const char *hed_talk_part_name(unsigned part);

/* ---- the program's side ---------------------------------------------------------------------- */

/* Listens at snap-PID, PID being this process. The socket is the caller's to close, and path[] to
 * remove. A socket that a dead process left at this path is replaced; HED_EEXIST if a living one
 * listens there (a process with the same number in another container). Removes sockets that dead
 * processes have left. */
int hed_talk_listen(int *listener, char path[HED_TALK_PATH_MAX], struct hed_why *why);
int hed_talk_listen_at(const char *path, int *listener, struct hed_why *why);

/* Waits for a connection of this user or of root; others are hung up on. timeout_ms: -1 for ever.
 * HED_ETIME; HED_EIO: the listener is of no use any more. peer may be NULL. */
int hed_talk_accept(int listener, int timeout_ms, int *out, pid_t *peer);

/* Takes one request. fds[0 .. q->fds) are the caller's to close, and close on exec. HED_ETRUNC: the
 * peer hung up. On any failure there are no descriptors to close. */
int hed_talk_receive(int fd, int timeout_ms, struct hed_talk_request *q, int fds[HED_TALK_FDS_MAX],
                     struct hed_why *why);

/* Sends an answer. HED_EIO: the peer is gone, which is no reason to stop anything. */
int hed_talk_answer(int fd, const struct hed_talk_answer *a);

/* ---- the command's side ---------------------------------------------------------------------- */

/* Connects to a process of this user, or, for root, of any. HED_ENOTFOUND: the process does not
 * listen. */
int hed_talk_open(pid_t pid, int *out, struct hed_why *why);
int hed_talk_open_at(const char *path, int *out, struct hed_why *why);

/* Is the process the one that listens at the other end? HED_ENOTFOUND: it is not. */
int hed_talk_check_peer(int fd, pid_t pid, struct hed_why *why);

/* The path where a process listens, or would. HED_ENOTFOUND: there is no folder. */
int hed_talk_path(pid_t pid, char path[HED_TALK_PATH_MAX], struct hed_why *why);

/* Sends a request with `count` descriptors, which stay the caller's. */
int hed_talk_send(int fd, const struct hed_talk_request *q, const int *fds, size_t count,
                  struct hed_why *why);

/* Waits for one answer to a request of that kind. HED_ETIME, HED_ETRUNC: the program is gone. 0
 * although the answer is a failure (a->err). */
int hed_talk_wait(int fd, int timeout_ms, unsigned kind, struct hed_talk_answer *a,
                  struct hed_why *why);

/* Waits for the answers after `a`, which was one, until the last is there. Returns a->err if it
 * gets there; then why is the program's. exchange also sends the request, and waits for the
 * first. */
int hed_talk_rest(int fd, int timeout_ms, struct hed_talk_answer *a, struct hed_why *why);
int hed_talk_exchange(int fd, const struct hed_talk_request *q, const int *fds, size_t count,
                      int timeout_ms, struct hed_talk_answer *a, struct hed_why *why);

/* All of it: connects, sends, waits for the last answer, hangs up. The result is that of
 * hed_talk_exchange(). */
int hed_talk_call(pid_t pid, const struct hed_talk_request *q, const int *fds, size_t count,
                  int timeout_ms, struct hed_talk_answer *a, struct hed_why *why);

/* Removes the socket of this process, which ends without the library's knowledge. */
void hed_talk_forget_own(void);

/* Calls visit with the number of each process of this user that has a socket, until it returns
 * false. Some may be dead. */
void hed_talk_each(bool (*visit)(void *arg, pid_t pid), void *arg);

/* ---- rescue ---------------------------------------------------------------------------------- */

/* Listens at rescue-PID for a child of ours. Otherwise as hed_talk_listen(). */
int hed_talk_listen_rescue(pid_t pid, int *listener, char path[HED_TALK_PATH_MAX],
                           struct hed_why *why);

/* Connects to our parent. HED_ENOTFOUND: it does not listen for us. */
int hed_talk_open_rescue(int *out, struct hed_why *why);
