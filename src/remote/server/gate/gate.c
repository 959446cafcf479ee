/* A gate: one connection, from the handshake to the hello. See gate.h. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "gen/cuda_abi.h"
#include "remote/server/gate/gate.h"
#include "remote/server/hello.h"
#include "remote/wire/link/link.h"

#define VERDICT_MS 10000 /* the listener decides at once unless it is very busy */

struct visit {
    const struct hed_keeper *keeper;
    uint64_t end_ns;
    struct hed_gate_answer answer;
};

static int
time_left_ms(const struct visit *v)
{
    const uint64_t now = hed_now_ns();

    return now < v->end_ns ? (int)((v->end_ns - now) / HED_NS_PER_MS) : 0;
}

/* Compares all of the room for a token, which is padded with zeros on both sides. */
static bool
same_token(const char *token, const struct hed_hello *h)
{
    char padded[sizeof h->token] = {0};

    return hed_str_copy(padded, sizeof padded, token) &&
           hed_same_secret(padded, h->token, sizeof padded);
}

static int
check_client(const struct visit *v, const struct hed_conn *conn, struct hed_why *why)
{
    if (!hed_deny_has(&v->keeper->denied, hed_conn_who(conn)))
        return 0;
    hed_why_set(why, "the certificate of %s was revoked", hed_conn_who(conn)->name);
    return HED_EACCESS;
}

static int
check_client_token(const struct visit *v, const struct hed_conn *conn, struct hed_why *why)
{
    const struct hed_hello *h = &v->answer.hello;

    if (!v->keeper->token[0] || hed_conn_who(conn)->certified || same_token(v->keeper->token, h))
        return 0;
    hed_why_set(why, h->token[0] ? "the token (tls_token) is not the server's"
                                 : "the client has neither a certificate (tls_cert, tls_key) nor a "
                                   "token (tls_token)");
    return HED_EACCESS;
}

static void
tell_refused(struct hed_conn *conn, int result, const char *text)
{
    struct hed_welcome w;

    hed_welcome_refuse(&w, result, text);
    (void)hed_conn_write(conn, &w, sizeof w);
}

/* Hears who a new client is. */
static int
hear_hello(struct visit *v, struct hed_conn *conn, struct hed_why *why)
{
    struct hed_hello *h = &v->answer.hello;
    int err = hed_conn_read(conn, h, sizeof *h, time_left_ms(v));

    if (err) {
        hed_why_set(why, "it hung up, or sent nothing, before its hello was complete");
        return err;
    }
    err = hed_hello_check(h, &hed_link_tcp, why);
    if (!err)
        err = check_client(v, conn, why);
    if (!err)
        err = check_client_token(v, conn, why);
    memset(h->token, 0, sizeof h->token); /* nobody else needs it */
    if (err)
        tell_refused(conn, CUDA_ERROR_SYSTEM_NOT_READY, why->text);
    return err;
}

/* Stops where another process can go on. */
static int
visit_gate(struct visit *v, enum hed_gate_kind kind, int fd, struct hed_why *why)
{
    struct hed_conn *conn;
    int err = hed_conn_accept(fd, v->keeper->plan->tls, time_left_ms(v), &conn, why);

    if (err)
        return err;
    err = kind == HED_GATE_SESSION ? hear_hello(v, conn, why) : check_client(v, conn, why);
    if (!err) {
        err = hed_conn_suspend(conn, &v->answer.state);
        if (!err)
            return 0;
        hed_why_set(why, "it does not wait for the answer to its hello");
    }
    hed_conn_close(conn);
    return err;
}

/* Waits until the listener has decided, and tells the client if it is refused. Takes the
 * connection. */
static void
pass_verdict(const struct hed_conn_state *state, int fd, int answer)
{
    struct pollfd decided = {.fd = answer, .events = POLLIN};
    struct hed_gate_verdict verdict;
    struct hed_why why = {""};
    struct hed_conn *conn;

    if (poll(&decided, 1, VERDICT_MS) == 1 &&
        recv(answer, &verdict, sizeof verdict, MSG_DONTWAIT) == (ssize_t)sizeof verdict &&
        hed_conn_resume(fd, hed_link_of(fd), state, &conn, &why) == 0) {
        verdict.text[sizeof verdict.text - 1] = '\0';
        tell_refused(conn, CUDA_ERROR_DEVICE_UNAVAILABLE, verdict.text);
        hed_conn_close(conn);
    }
}

void
hed_gate_run(const struct hed_keeper *k, enum hed_gate_kind kind, int conn, int answer)
{
    static struct visit v; /* as long as the process */
    struct hed_why why = {""};
    const int again = dup(conn);

    v.keeper = k;
    v.end_ns = hed_now_ns() + (uint64_t)k->plan->patience_ms * HED_NS_PER_MS;

    const int err = again < 0 ? HED_ENOMEM : visit_gate(&v, kind, conn, &why);

    if (err)
        (void)snprintf(v.answer.refused, sizeof v.answer.refused, "%s",
                       why.text[0] ? why.text : hed_err_text(err));
    if (send(answer, &v.answer, sizeof v.answer, MSG_NOSIGNAL) == (ssize_t)sizeof v.answer && !err)
        pass_verdict(&v.answer.state, again, answer);
}
