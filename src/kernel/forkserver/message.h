/* What a program and the process that compiles its kernels say to each other.
 *
 *   program ── request (+ memory with the PTX) ──> compiler
 *           <── answer (+ memory with the object) ──
 *
 * Every message is one packet of a SOCK_SEQPACKET socket, so whoever dies leaves no half message.
 * Neither side believes the other: all sizes are checked, and PTX and objects come in memory
 * that nobody can change (base/sealed.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

#define HED_FORKSERVER_MAGIC UINT32_C(0x48464d33) /* "HFM3": change it with the structs */

#define HED_FORKSERVER_NAME_MAX 65536                   /* bytes of a kernel's name */
#define HED_FORKSERVER_FEATURES_MAX 1024                /* bytes of the processor's features */
#define HED_FORKSERVER_TEXT_MAX ((uint64_t)1 << 30)     /* bytes of PTX */
#define HED_FORKSERVER_OBJECT_MAX ((uint64_t)512 << 20) /* bytes of an object */

enum hed_forkserver_flag {
    HED_FORKSERVER_CHECK_ALIGNMENT = 1,
    HED_FORKSERVER_CONFINED = 2,
    HED_FORKSERVER_KEEP = 4,     /* if the program is gone, the object goes to the cache */
    HED_FORKSERVER_WITHDRAW = 8, /* on the list's socket: `claim` is not wanted any more */
};

/* Behind it are the kernel's name and the features, without NULs.
 *
 * The same packet, on the socket of the list, tells the fork server what is to be compiled if the
 * program ends before that (after.c). The PTX comes with it unless a request that is still on the
 * list has the same. */
struct hed_forkserver_request {
    uint32_t magic;
    uint32_t number; /* the answer has the same */
    uint32_t abi;    /* HED_PTX_ABI */
    uint32_t rows;   /* enum hed_rows */
    uint32_t level;
    uint32_t flags;     /* enum hed_forkserver_flag */
    uint32_t seconds;   /* of processor time that it may take; 0: no limit */
    uint32_t name_size; /* bytes, like the other sizes */
    uint32_t features_size;
    uint32_t reserved;
    uint64_t memory;    /* that the compiler may have; 0: no limit */
    uint64_t text_size; /* of the PTX */
    /* The hash of the PTX: the compiler may still have it. It reads no PTX with another hash. */
    uint8_t text[HED_HASH_SIZE];
    uint8_t claim[HED_HASH_SIZE]; /* under which the program claims the kernel in the cache */
};

#define HED_FORKSERVER_REQUEST_MAX \
    (sizeof(struct hed_forkserver_request) + HED_FORKSERVER_NAME_MAX + HED_FORKSERVER_FEATURES_MAX)

enum hed_forkserver_kind {
    HED_FORKSERVER_DONE = 1,   /* err and why are the compiler's; an object comes with err 0 */
    HED_FORKSERVER_NEEDS_TEXT, /* the request must come again, with the PTX */
    HED_FORKSERVER_DIED,       /* the fork server says: the compiler died */
};

struct hed_forkserver_answer {
    uint32_t magic;
    uint32_t kind;   /* enum hed_forkserver_kind */
    uint32_t number; /* of the request; 0 if it died */
    int32_t err;     /* 0 or HED_E... */
    uint32_t signal; /* DIED: that ended it; 0: it ended itself */
    uint32_t leaves; /* DONE: the compiler ends now, and the next request finds a fresh one */
    uint64_t peak;   /* DIED: the most bytes of memory that it had */
    uint64_t size;   /* DONE: of the object */
    struct hed_why why;
};

/* Sends one packet, with a descriptor unless fd is -1. 0, or a negative errno. It never waits: an
 * honest other side has taken what came before. */
int hed_forkserver_send(int socket, const void *head, size_t head_size, const void *tail,
                        size_t tail_size, int fd);
/* Waits for one packet of at most `size` bytes, and returns its size; 0 if the other side is gone;
 * a negative errno. `flags` are those of recvmsg(2). A descriptor that came with it is in *fd,
 * which is -1 otherwise. */
long hed_forkserver_receive(int socket, void *data, size_t size, int flags, int *fd);

/* The texts behind a request, terminated. */
struct hed_forkserver_texts {
    char name[HED_FORKSERVER_NAME_MAX + 1], features[HED_FORKSERVER_FEATURES_MAX + 1];
};

/* Copies the texts that lie at `tail`. Their sizes have been checked. */
void hed_forkserver_texts(const struct hed_forkserver_request *r, const unsigned char *tail,
                          struct hed_forkserver_texts *out);
