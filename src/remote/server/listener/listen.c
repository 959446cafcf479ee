/* The sockets that the server listens on. See listener.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define ACCEPT_MAX 64 /* connections accepted in one round; then signals and peers are handled */
#define DEAF_NS (HED_NS_PER_S / 10)

static void
log_listening(const struct hed_server *s, const struct hed_listener *l)
{
    const struct hed_link *link = l->address.transport->link;
    char text[HED_ADDRESS_TEXT];

    hed_address_text(&l->address, text, sizeof text);
    hed_info(SERVER, "listening on %s%s", text,
             link->private               ? ""
             : !s->options->tls.insecure ? " (TLS)"
                                         : " (no TLS)");
    if (!link->private && s->options->tls.insecure)
        hed_warn(
            SERVER,
            "INSECURE: %s accepts every client that can reach it, without encryption, and lets "
            "it run code on the GPU%s",
            text,
            link->is_loopback && link->is_loopback(l->fd) ? " (this machine only)"
                                                          : "; it is open to the network");
}

/* Where QEMU finds the server. Root's folder is made; the other users' exists. */
static int
find_guest_socket(const char *name, char path[HED_VM_PATH], struct hed_why *why)
{
    char window[HED_VM_PATH];
    const int err = hed_vm_paths(name, path, window, why);

    if (!err && geteuid() == 0) {
        char folder[HED_VM_PATH];

        (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
        (void)mkdir(folder, 0755); /* systemd may have made it; if not, listening fails */
    }
    return err;
}

static int
open_listener(struct hed_server *s, const struct hed_address *a, struct hed_why *why)
{
    struct hed_listener *l = &s->listeners[s->listener_count];
    struct hed_address address = *a;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    struct stat st;
    int fd = -1;
    int err = 0;

    if (a->transport->id == HED_TRANSPORT_VM)
        err = find_guest_socket(a->host, address.path, why);
    if (!err)
        err = hed_conn_listen(&address, (int)s->options->mode, &fd, why);
    if (err)
        return err;
    *l = (struct hed_listener){
        .source.kind = HED_SOURCE_LISTENER,
        .fd = fd,
        .address = address,
    };
    s->listener_count++;
    if (address.path[0] && stat(address.path, &st) == 0) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    if (a->transport->link->note_address)
        a->transport->link->note_address(fd, &l->address);
    /* Non-blocking: a connection may be gone by the time it is accepted. */
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        hed_why_set(why, "cannot watch the socket: %m");
        return hed_err_from_errno(errno);
    }
    if (a->transport->id == HED_TRANSPORT_VM)
        err = hed_guest_create(s, a, &l->guest, why);
    if (!err)
        log_listening(s, l);
    return err;
}

int
hed_listen_open(struct hed_server *s, struct hed_why *why)
{
    int err = 0;

    for (uint32_t i = 0; !err && i < s->options->listen_count; i++)
        err = open_listener(s, &s->options->listen[i], why);
    if (!err && (s->options->mode & 0077) == 0 &&
        (s->options->allow_all || s->options->uid_count || s->options->gid_count))
        hed_warn(
            SERVER,
            "--mode %04o keeps out the users that --allow-uid and --allow-gid let in; add --mode "
            "0666",
            s->options->mode);
    return err;
}

void
hed_listen_close(struct hed_server *s)
{
    struct stat st;

    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct hed_listener *l = &s->listeners[i];

        /* Removed before the socket is closed: as long as it listens, no other server takes the
         * path for stale. */
        if (l->address.path[0] && stat(l->address.path, &st) == 0 && st.st_dev == l->dev &&
            st.st_ino == l->ino)
            (void)unlink(l->address.path);
        /* Closing is not enough: a child that has just been forked may still have the descriptor
         * open. */
        (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, l->fd, NULL);
        (void)shutdown(l->fd, SHUT_RDWR);
        (void)close(l->fd);
    }
    s->listener_count = 0;
}

void
hed_listen_pause(struct hed_server *s, bool pause)
{
    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct hed_listener *l = &s->listeners[i];
        struct epoll_event e = {.events = pause ? 0 : EPOLLIN, .data.ptr = l};

        (void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, l->fd, &e);
    }
    s->deaf = pause;
    s->deaf_until_ns = pause ? hed_now_ns() + DEAF_NS : 0;
}

void
hed_listen_accept(struct hed_server *s, struct hed_listener *l)
{
    const struct hed_link *link = l->address.transport->link;

    for (int i = 0; i < ACCEPT_MAX; i++) {
        struct sockaddr_storage at = {0};
        socklen_t size = sizeof at;
        const int fd = accept4(l->fd, (struct sockaddr *)&at, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                /* epoll would report it again and again. */
                hed_warn(SERVER, "cannot accept a connection: %m");
                hed_listen_pause(s, true);
            }
            if (errno != EINTR && errno != ECONNABORTED)
                return;
            continue;
        }
        s->accepted++;
        if (l->guest)
            hed_guest_begin(s, l->guest, fd);
        else
            hed_peer_add(s, fd, link, &at, NULL);
    }
}
