/* The 64 bytes by which another process of this computer finds memory or an event of this one.
 *
 *   exporter: a file in memory, which stays open                      importer
 *     name = {process, its start, descriptor, secret, part of it} ───> /proc/PID/fd/N
 *
 * The name is only a way to the file; the kernel decides who may go there. It lets a process open
 * the descriptors of another one that has the same user and is not privileged, in the same PID
 * namespace. A descriptor disappears with its process, so nothing is left when the exporter is
 * killed.
 *
 * A name comes from outside and may hold anything. hed_ipc_open() opens nothing but a memory file
 * of the same user with heddle's name, and the caller compares the secret in the file with the one
 * in the name: numbers of processes and descriptors are used again.
 */
#pragma once

#include <stdint.h>

#define HED_IPC_SECRET 16 /* bytes */
#define HED_IPC_FILE "heddle-memory"

#define HED_IPC_KEY 16 /* bytes */

/* The kinds with a key are those of a machine that knows keys (struct hed_machine_keys): the name
 * has the key instead of the way to a file. A key alone opens nothing but what the machine lets
 * this program have. */
enum hed_ipc_kind {
    HED_IPC_MEMORY = 1,
    HED_IPC_EVENT,
    HED_IPC_POOL,
    HED_IPC_KEY_MEMORY,
    HED_IPC_KEY_EVENT,
    HED_IPC_KEY_POOL
};

struct hed_ipc_name {
    char magic[4];
    uint8_t version, kind; /* enum hed_ipc_kind */
    uint16_t zero;
    union {
        struct {
            int32_t pid, fd;
            uint64_t start; /* of the process, in the kernel's units */
        };
        uint8_t key[HED_IPC_KEY];
    };
    uint8_t secret[HED_IPC_SECRET];
    uint64_t at, size; /* the part of the file that is meant; bytes */
    uint64_t more;     /* zero */
};

_Static_assert(sizeof(struct hed_ipc_name) == 64, "the size of CUDA's handles");

/* Random bytes; HED_EIO if the kernel has none. */
int hed_ipc_secret(uint8_t out[HED_IPC_SECRET]);

/* The name of a part of a file of this process. HED_ENOTSUP: /proc cannot be read here. */
int hed_ipc_name(enum hed_ipc_kind kind, int fd, const uint8_t secret[HED_IPC_SECRET], uint64_t at,
                 uint64_t size, struct hed_ipc_name *out);

/* A name with a key. The secret is that of a pool, or NULL. */
void hed_ipc_key_name(enum hed_ipc_kind kind, const uint8_t key[HED_IPC_KEY], const uint8_t *secret,
                      uint64_t at, uint64_t size, struct hed_ipc_name *out);

/* Is it a name of this kind? */
int hed_ipc_check(const struct hed_ipc_name *n, enum hed_ipc_kind kind);

/* Opens the file of a name. The descriptor belongs to the caller.
 *   HED_EINVAL     it is no name of this kind
 *   HED_ESTATE     it is a name of this process
 *   HED_ENOTFOUND  the process has ended, or no longer has it
 *   HED_EACCESS    it belongs to another user, or is privileged */
int hed_ipc_open(const struct hed_ipc_name *n, enum hed_ipc_kind kind, int *fd);
