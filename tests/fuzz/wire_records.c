/* Fuzz target: one end of a TLS connection after the handshake. Its peer seals whatever the input
 * says, or sends bytes that are not sealed at all; in between the end reads, writes, and moves. The
 * bytes that are read are those that were sealed as data, in order, and none after the first thing
 * that was wrong. What the end writes can be read. */
#include "harness/fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/tls_sealer.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"

#define QUEUE_MAX 65536  /* bytes that wait to be read; a socket takes more */
#define SAID_MAX 1000000 /* bytes of data in one input */
#define SEALED_MAX 16640 /* bytes after a record's head */
#define DATALESS_MAX 32  /* records in a row */

static struct play {
    const uint8_t *at, *end;
    struct sealer sealer;
    int fds[2];              /* the peer's, the end's */
    struct hed_tls_end *tls; /* the end */
    struct hed_tls_end *ear; /* at the peer: reads what the end writes */
    size_t queued;
    size_t said, heard; /* bytes of data that the end must read, and has read */
    unsigned dataless;
    bool wrong; /* the peer has sent something wrong */
    bool over;  /* the end has noticed */
} play;

/* The next n bytes as a number; missing bytes are 0. */
static uint64_t
number(size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && play.at < play.end; i++)
        v |= (uint64_t)*play.at++ << 8 * i;
    return v;
}

static uint8_t
byte_of(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 8));
}

static struct hed_tls_end *
resume_end(int fd, const struct hed_conn_state *s, bool exact)
{
    struct hed_tls_end *t = NULL;

    must(hed_tls_resume(fd, &hed_link_unix, s, exact, &t) == 0);
    return t;
}

/* Reads at most n bytes of what is there. Returns whether there was something. */
static bool
read_some(size_t n)
{
    static uint8_t bytes[RECORD_ROOM];
    const ssize_t got = hed_tls_read(play.tls, bytes, n < sizeof bytes ? n : sizeof bytes, 0);

    if (got < 0) {
        must(got == HED_ETIME || got == HED_EIO);
        must(!(play.over && got == HED_ETIME));
        play.over |= got == HED_EIO;
        must(!play.over || play.wrong);
        return false;
    }
    must(got > 0 && !play.over && play.heard + (size_t)got <= play.said);
    for (ssize_t i = 0; i < got; i++)
        must(bytes[i] == byte_of(play.heard++));
    return true;
}

static void
read_all(void)
{
    while (read_some(RECORD_ROOM))
        ;
    play.queued = 0;
}

static void
send_raw(const uint8_t *p, size_t n)
{
    if (play.queued + n > QUEUE_MAX)
        read_all();
    /* The end takes nothing more when it is over. */
    if (!play.over && n > 0)
        must(send(play.fds[0], p, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n);
    play.queued += n;
}

static void
send_sealed(void)
{
    static const uint8_t types[] = {DATA, DATA, DATA, HANDSHAKE, HANDSHAKE, ALERT, 0, 99};
    static const uint8_t update[] = {24, 0, 0, 1};
    static uint8_t content[RECORD_ROOM], record[RECORD_ROOM];
    const uint8_t what = (uint8_t)number(1);
    const uint8_t type = types[what & 7];
    const bool large = what & 8;
    size_t n = large ? CONTENT_MAX - 8 + number(1) % 16 : number(1);
    const size_t zeros = what & 16 ? number(2) % 600 : 0;
    const bool is_update = type == HANDSHAKE && what & 32;

    if (play.said + n > SAID_MAX)
        return;
    if (is_update) {
        memcpy(content, update, sizeof update);
        content[4] = (uint8_t)(number(1) % 3);
        n = 5;
    } else if (type == DATA) {
        for (size_t i = 0; i < n; i++)
            content[i] = byte_of(play.said + i);
    } else {
        for (size_t i = 0; i < n; i++)
            content[i] = type ? (uint8_t)number(1) : 0; /* before a zero, it would be the type */
    }

    const bool good_update = type == HANDSHAKE && n == 5 &&
                             memcmp(content, update, sizeof update) == 0 && content[4] < 2;
    const size_t size = seal_content(&play.sealer, type, content, n, zeros, record);

    if (good_update)
        sealer_change_key(&play.sealer);
    play.dataless = type == DATA && n > 0 ? 0 : play.dataless + 1;
    play.wrong |= !(type == DATA || good_update) || n > CONTENT_MAX || size - 5 > SEALED_MAX ||
                  play.dataless > DATALESS_MAX;
    if (!play.wrong && type == DATA)
        play.said += n;
    send_raw(record, size);
}

static void
send_bytes(void)
{
    const size_t n = number(1) % 32;
    uint8_t bytes[32];

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)number(1);
    play.wrong |= n > 0;
    send_raw(bytes, n);
}

static void
write_some(void)
{
    static uint8_t out[40000], in[sizeof out];
    const size_t n = number(2) % sizeof out;

    for (size_t i = 0; i < n; i++)
        out[i] = byte_of(i);
    must(hed_tls_write(play.tls, out, n) == 0);
    for (size_t at = 0; at < n;) {
        const ssize_t got = hed_tls_read(play.ear, in + at, n - at, 0);

        must(got > 0);
        at += (size_t)got;
    }
    must(memcmp(in, out, n) == 0);
}

static void
move(bool exact)
{
    struct hed_conn_state s;
    const int err = hed_tls_suspend(play.tls, &s);

    must(err == 0 || err == HED_ESTATE || (err == HED_EIO && play.over));
    if (err)
        return;
    hed_tls_close(play.tls, true);
    play.tls = resume_end(play.fds[1], &s, exact);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    play = (struct play){.at = data, .end = data + size};

    const uint8_t first = (uint8_t)number(1);
    const struct suite *suite = &suites[first % 3];
    const struct hed_conn_state mine = state_of(suite, false, 0);
    const struct hed_conn_state peers = state_of(suite, true, 0);

    play.sealer = sealer_for(suite, false);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, play.fds) == 0);
    play.tls = resume_end(play.fds[1], &mine, first & 4);
    play.ear = resume_end(play.fds[0], &peers, false);
    while (play.at < play.end) {
        const uint8_t what = (uint8_t)number(1);

        switch (what % 8) {
        case 0:
        case 1:
        case 2:
            send_sealed();
            break;
        case 3:
            if (what & 8)
                send_bytes();
            break;
        case 4:
            write_some();
            break;
        case 5:
            move(what & 8);
            break;
        case 6:
            (void)read_some(1 + number(2));
            break;
        default:
            read_all();
        }
    }
    read_all();
    must(play.heard == play.said);
    hed_tls_close(play.tls, true);
    hed_tls_close(play.ear, true);
    close(play.fds[0]);
    close(play.fds[1]);
    return 0;
}
