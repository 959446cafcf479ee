/* What tests of TLS records share: two ends that are made by hand, and bytes between them. */
#pragma once

#include "unit/wire/make.h"

#include <pthread.h>

#include "harness/tls_sealer.h"

struct two {
    int fds[2];
    struct hed_tls_end *a, *b;
};

static inline struct hed_tls_end *
resume(int fd, const struct hed_conn_state *s, bool exact)
{
    struct hed_tls_end *t = NULL;

    assert_int_equal(hed_tls_resume(fd, &hed_link_unix, s, exact, &t), 0);
    return t;
}

static inline struct two
open_two(const struct suite *suite, uint64_t records, bool exact)
{
    const struct hed_conn_state a = state_of(suite, true, records);
    const struct hed_conn_state b = state_of(suite, false, records);
    struct two t;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t.fds), 0);
    t.a = resume(t.fds[0], &a, false);
    t.b = resume(t.fds[1], &b, exact);
    return t;
}

static inline void
close_two(struct two *t)
{
    hed_tls_close(t->a, true);
    hed_tls_close(t->b, true);
    close(t->fds[0]);
    close(t->fds[1]);
}

static inline char
byte_at(size_t i)
{
    return (char)(i * 7 + (i >> 9));
}

static inline int
write_bytes(struct hed_tls_end *t, size_t n)
{
    char *p = malloc(n + 1);

    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = byte_at(i);

    const int err = hed_tls_write(t, p, n);

    free(p);
    return err;
}

/* Returns an error, or 0 if exactly these bytes arrive. */
static inline int
read_bytes(struct hed_tls_end *t, size_t n)
{
    char piece[5000];

    for (size_t at = 0; at < n;) {
        const size_t most = n - at < sizeof piece ? n - at : sizeof piece;
        const ssize_t got = hed_tls_read(t, piece, most, hed_socket_end(PATIENCE_MS));

        if (got < 0)
            return (int)got;
        assert_in_range(got, 1, most);
        for (ssize_t i = 0; i < got; i++, at++)
            if (piece[i] != byte_at(at))
                fail_msg("byte %zu of %zu differs", at, n);
    }
    return 0;
}

struct flow {
    struct hed_tls_end *end;
    size_t n;
    int err;
};

static inline void *
pour(void *arg)
{
    struct flow *f = arg;

    f->err = write_bytes(f->end, f->n);
    return NULL;
}
