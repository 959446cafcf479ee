/* Questions to a running server. See ask.h. */
#include "remote/wire/ask.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

#define ANSWER_MS 5000               /* to wait for the answer, all of it */
#define DEFAULT_FOLDER "/run/heddle" /* for root; others: $XDG_RUNTIME_DIR */

static int
find_server(const char *listen, struct hed_address *out, struct hed_why *why)
{
    const char *folder = geteuid() == 0 ? DEFAULT_FOLDER : secure_getenv("XDG_RUNTIME_DIR");
    char text[256];

    if (listen)
        return hed_address_parse(listen, out, why) == 0 ? 0 : HED_EINVAL;
    if (!folder || folder[0] != '/') {
        hed_why_set(why,
                    "cannot tell where the server is, because XDG_RUNTIME_DIR is not set; give "
                    "its address, such as --listen shm:/tmp/gpu.sock");
        return HED_EINVAL;
    }
    (void)snprintf(text, sizeof text, "shm:%s/heddle.sock", folder);
    return hed_address_parse(text, out, why) == 0 ? 0 : HED_EINVAL;
}

static int
read_answer(struct hed_conn *c, struct hed_buf *b)
{
    const uint64_t end = hed_now_ns() + ANSWER_MS * HED_NS_PER_MS;
    char piece[16384];
    ssize_t n;

    do {
        const uint64_t now = hed_now_ns();

        if (now >= end)
            return HED_ETIME;
        n = hed_conn_read_some(c, piece, 1, sizeof piece, (int)((end - now) / HED_NS_PER_MS) + 1);
        if (n > 0)
            hed_buf_add(b, piece, (size_t)n);
    } while (n > 0 && !b->err);
    /* The end of the connection is the end of the text. */
    return b->err ? b->err : n == HED_EIO || n == 0 ? 0 : (int)n;
}

int
hed_ask_open(const char *listen, const struct hed_preface *question, struct hed_conn **out,
             struct hed_why *why)
{
    struct hed_preface preface = *question;
    struct hed_address address;
    int err = find_server(listen, &address, why);

    if (err != 0)
        return err;
    if (!address.transport->link->local) {
        hed_why_set(why,
                    "questions to a server do not work over TCP; use the server's socket, with "
                    "--listen shm:PATH");
        return HED_EINVAL;
    }
    memcpy(preface.magic, HED_PREFACE_MAGIC, sizeof preface.magic);
    err = hed_conn_open(&address, NULL, &preface, ANSWER_MS, out, why);
    return err == HED_EINVAL ? HED_EIO : err;
}

int
hed_ask(const char *listen, const struct hed_preface *question, struct hed_buf *text,
        struct hed_why *why)
{
    struct hed_conn *c = NULL;
    int err = hed_ask_open(listen, question, &c, why);

    if (err != 0)
        return err;
    err = read_answer(c, text);
    if (err != 0)
        hed_why_set(why, "the server does not answer: %s", hed_err_text(err));
    hed_conn_close(c);
    return err == HED_EINVAL ? HED_EIO : err;
}

int
hed_ask_client(const char *listen, uint64_t worker, pid_t *out, struct hed_why *why)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_buf text;
    char key[64];

    hed_buf_init(&text, HED_ASK_ANSWER_MAX);

    int err = hed_ask(listen, &question, &text, why);

    if (err == 0) {
        /* No text of a client can hold these words: quotes in it are escaped. */
        (void)snprintf(key, sizeof key, "{\"worker\":%" PRIu64 ",", worker);

        const char *clients = strstr(hed_buf_cstr(&text), HED_ASK_CLIENTS);
        const char *at = clients ? strstr(clients, key) : NULL;
        const char *pid = at ? strstr(at, ",\"pid\":") : NULL;
        const long number = pid ? strtol(pid + 7, NULL, 10) : 0;

        if (number > 0 && number <= INT_MAX) {
            *out = (pid_t)number;
        } else {
            hed_why_set(why,
                        at ? "the client of worker %" PRIu64 " is on another machine: run the "
                             "command there, with the number of the program"
                           : "the server has no worker %" PRIu64,
                        worker);
            err = at ? HED_ENOTSUP : HED_ENOTFOUND;
        }
    }
    hed_buf_fini(&text);
    return err;
}

int
hed_ask_server(const char *listen, pid_t *out, struct hed_why *why)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_conn *c = NULL;
    struct hed_buf text;
    pid_t pid = 0;
    int err = hed_ask_open(listen, &question, &c, why);

    if (err)
        return err;
    hed_buf_init(&text, HED_ASK_ANSWER_MAX);
    err = hed_conn_peer(c, &(uid_t){0}, &(gid_t){0}, &pid);
    if (!err)
        err = read_answer(c, &text);
    if (!err) {
        const char *at = strstr(hed_buf_cstr(&text), ",\"pid\":");

        if (!at || strtol(at + 7, NULL, 10) != (long)pid) {
            hed_why_set(why, "another process opened the server's socket; stop the server by hand");
            err = HED_EACCESS;
        }
    }
    hed_conn_close(c);
    hed_buf_fini(&text);
    if (!err)
        *out = pid;
    return err;
}

int
hed_ask_gpu(const char *listen, char *out, size_t size)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_why ignored;
    struct hed_buf text;
    int err;

    hed_buf_init(&text, HED_ASK_ANSWER_MAX);
    err = hed_ask(listen, &question, &text, &ignored);
    if (!err) {
        const char *at = strstr(hed_buf_cstr(&text), ",\"gpu\":\"");
        const size_t n = at ? strcspn(at + 8, "\"\\") : 0;

        /* A value with characters that JSON escapes is none that we can give back. */
        if (n > 0 && n < size && at[8 + n] == '"')
            (void)snprintf(out, size, "%.*s", (int)n, at + 8);
        else
            err = HED_EFORMAT;
    }
    hed_buf_fini(&text);
    return err;
}

int
hed_ask_serves(const char *listen, pid_t client, bool *out)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_why ignored;
    struct hed_buf text;
    char key[64];

    hed_buf_init(&text, HED_ASK_ANSWER_MAX);

    const int err = hed_ask(listen, &question, &text, &ignored);

    if (!err) {
        const char *clients = strstr(hed_buf_cstr(&text), HED_ASK_CLIENTS);

        (void)snprintf(key, sizeof key, ",\"pid\":%d,\"uid\":", (int)client);
        *out = clients && strstr(clients, key);
    }
    hed_buf_fini(&text);
    return err;
}
