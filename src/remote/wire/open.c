/* How connections begin: a client opens one, a server accepts one. The sockets come from links. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

#define HANDSHAKE_TIMES 4 /* times the time to connect */

static int
conn_create(int fd, const struct hed_link *link, struct hed_conn **out)
{
    struct hed_conn *c = calloc(1, sizeof *c);

    if (!c)
        return HED_ENOMEM;
    c->fd = fd;
    c->link = link;
    *out = c;
    return 0;
}

/* Puts the address in front of the reason. */
static void
explain_address(const struct hed_address *a, int err, const struct hed_why *reason,
                struct hed_why *why)
{
    char text[HED_ADDRESS_TEXT];

    hed_address_text(a, text, sizeof text);
    hed_why_set(why, "%s: %s", text, reason->text[0] ? reason->text : hed_err_text(err));
}

/* ---- the client's side ----------------------------------------------------------------------- */

/* Does the user's configuration say how a connection that leaves this machine is secured? */
static int
check_client_tls(const struct hed_tls *tls, struct hed_why *why)
{
    if (tls && tls->insecure && (tls->ca[0] || tls->cert[0] || tls->key[0])) {
        hed_why_set(why, "TLS files are set, and so is insecure = yes; remove one of the two");
        return HED_EINVAL;
    }
    if (tls && (tls->insecure || tls->ca[0]))
        return 0;
    hed_why_set(why, "TCP needs TLS: set tls_ca, and tls_cert with tls_key or tls_token "
                     "(`heddle cert` makes the files), or insecure = yes on a network you trust");
    return HED_EACCESS;
}

static bool
begins_tls(const struct hed_link *link, const struct hed_tls *tls)
{
    return !link->private && !tls->insecure;
}

/* Once the server's machine has answered, the server itself may have many clients to meet first, so
 * the handshake has more time. */
static int
open_checked(const struct hed_address *a, const struct hed_tls *tls,
             const struct hed_preface *preface, int timeout_ms, struct hed_conn **out,
             struct hed_why *why)
{
    const struct hed_link *link = a->transport->link;
    struct hed_conn *c = NULL;
    int fd = -1;
    int err = link->connect(a, hed_socket_end(timeout_ms), &fd, why);

    if (!err && (err = conn_create(fd, link, &c)))
        close(fd);
    if (!err && (err = hed_conn_write(c, preface, sizeof *preface)))
        hed_why_set(why, "the server hung up at once; its log may say why");
    if (!err && begins_tls(link, tls)) {
        const int64_t ms = (int64_t)timeout_ms * HANDSHAKE_TIMES;

        err = hed_tls_begin(fd, link, tls, a->host,
                            hed_socket_end(ms > INT_MAX ? INT_MAX : (int)ms), &c->tls, why);
    }
    if (!err)
        *out = c;
    else
        hed_conn_close(c);
    return err;
}

int
hed_conn_open(const struct hed_address *a, const struct hed_tls *tls,
              const struct hed_preface *preface, int timeout_ms, struct hed_conn **out,
              struct hed_why *why)
{
    const struct hed_link *link = a->transport->link;
    struct hed_why reason = {""};
    int err = link->private ? 0 : check_client_tls(tls, &reason);

    if (!err)
        err = open_checked(a, tls, preface, timeout_ms, out, &reason);
    if (err)
        explain_address(a, err, &reason, why);
    return err;
}

/* ---- the server's side ----------------------------------------------------------------------- */

int
hed_conn_listen(const struct hed_address *a, int mode, int *fd, struct hed_why *why)
{
    struct hed_why reason = {""};
    const int err = a->transport->link->listen(a, mode, fd, &reason);

    if (err)
        explain_address(a, err, &reason, why);
    return err;
}

static int
check_server_tls(const struct hed_tls *tls, struct hed_why *why)
{
    if (tls && (tls->insecure || tls->cert[0]))
        return 0;
    hed_why_set(why, "the server has no certificate, so it refuses clients over TCP");
    return HED_EACCESS;
}

static int
begin_server_tls(struct hed_conn *c, const struct hed_tls *tls, uint64_t end, struct hed_why *why)
{
    const char ready = HED_TLS_READY;
    int err = hed_tls_begin(c->fd, c->link, tls, NULL, end, &c->tls, why);

    if (!err && (err = hed_tls_write(c->tls, &ready, 1)))
        hed_why_set(why, "the client hung up");
    return err;
}

/* A connection over an accepted socket. Takes ownership of it, even if it fails. */
static int
conn_adopt(int fd, const struct hed_link *link, struct hed_conn **out, struct hed_why *why)
{
    int err = HED_EINVAL;

    if (!link || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, 0) != 0)
        hed_why_set(why, "%s", link ? strerror(errno) : "the descriptor is not one of our sockets");
    else if (link->tune && (err = link->tune(fd)) != 0)
        hed_why_set(why, "the client hung up");
    else if ((err = conn_create(fd, link, out)) != 0)
        hed_why_set(why, "%s", hed_err_text(err));
    if (err && fd >= 0)
        close(fd);
    return err;
}

int
hed_conn_accept(int fd, const struct hed_tls *tls, int timeout_ms, struct hed_conn **out,
                struct hed_why *why)
{
    const uint64_t end = hed_socket_end(timeout_ms);
    struct hed_conn *c = NULL;
    int err = conn_adopt(fd, hed_link_of(fd), &c, why);

    if (err)
        return err;
    if (!c->link->private)
        err = check_server_tls(tls, why);
    if (!err && !c->link->private && !tls->insecure)
        err = begin_server_tls(c, tls, end, why);
    if (err)
        hed_conn_close(c);
    else
        *out = c;
    return err;
}

int
hed_conn_resume(int fd, const struct hed_link *link, const struct hed_conn_state *s,
                struct hed_conn **out, struct hed_why *why)
{
    struct hed_conn *c = NULL;
    int err = conn_adopt(fd, link, &c, why);

    if (!err && s->cipher && (err = hed_tls_resume(fd, c->link, s, false, &c->tls)) != 0) {
        hed_why_set(why, "%s", hed_err_text(err));
        hed_conn_close(c);
    }
    if (!err)
        *out = c;
    return err;
}
