/* Links: how a connection of a transport is addressed, made, listened for and watched.
 *
 * A link deals in sockets. What travels over a connection, and TLS, are the same for all links:
 * conn.c reads and writes, and asks the link only what differs.
 *
 * Functions that return int return 0 or HED_E... and set *why, unless the comment says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct hed_address;
struct hed_why;

struct hed_link {
    /* The families of its sockets (AF_...), by which the link of an accepted socket is found; 0 for
     * none. */
    int families[2];

    /* The peer is a process of this machine. The kernel then knows its user (SO_PEERCRED), and
     * descriptors can be passed. */
    bool local;

    /* Nobody can listen in or answer in the peer's place: it is a process of this machine, or of a
     * guest whose QEMU is. Over any other link, connections are secured by TLS, or the user has
     * asked for insecure ones. */
    bool private;

    /* Parses the part of an address after the scheme. `text` is the complete address, for
     * messages. */
    int (*parse)(const char *text, const char *rest, struct hed_address *a, struct hed_why *why);
    void (*print)(const struct hed_address *a, char *out, size_t size);

    /* Client: returns a connected, blocking socket. `end` is a time of hed_now_ns(), UINT64_MAX for
     * no end. */
    int (*connect)(const struct hed_address *a, uint64_t end, int *fd, struct hed_why *why);

    /* Server: returns a listening socket. `mode` is that of the file, if the address is one. */
    int (*listen)(const struct hed_address *a, int mode, int *fd, struct hed_why *why);

    /* Server: fills in what the kernel has chosen where the address left it open. NULL if nothing
     * can be open. */
    void (*note_address)(int listening, struct hed_address *a);

    /* Server: can only processes of this machine connect? NULL if that cannot be told. */
    bool (*is_loopback)(int listening);

    /* Server: the name of a peer in the log. NULL for "local". */
    void (*name_peer)(const struct sockaddr_storage *at, char *out, size_t size);

    /* Both: sets the options of a connected socket. NULL for none. Does not set a reason. */
    int (*tune)(int fd);

    /* Both: has the peer's machine stopped acknowledging what it is sent? Threads that wait call it
     * about once a second. NULL if the kernel itself notices that a peer is gone. */
    bool (*is_silent)(int fd);
};

extern const struct hed_link hed_link_unix, hed_link_tcp, hed_link_vm;

/* For other links: listens on the unix socket a->path, as `listen` above. */
int hed_unix_listen(const struct hed_address *a, int mode, int *fd, struct hed_why *why);

/* The link of a socket; NULL if it is none of ours. */
const struct hed_link *hed_link_of(int fd);

static inline bool
hed_link_silent(const struct hed_link *link, int fd)
{
    return link->is_silent && link->is_silent(fd);
}
