/* Stands in for TLS where heddle was built without OpenSSL: every attempt fails and says so. */
#ifndef HED_HAVE_OPENSSL

#include "base/err.h"
#include "remote/wire/conn.h"
#include "remote/wire/socket.h"

bool
hed_tls_built(void)
{
    return false;
}

int
hed_tls_prepare(const struct hed_tls *tls, struct hed_why *why)
{
    (void)tls;
    hed_why_set(why, "this heddle was built without OpenSSL, so it has no TLS");
    return HED_ENOTSUP;
}

int
hed_tls_begin(int fd, const struct hed_link *link, const struct hed_tls *tls, const char *host,
              uint64_t end, struct hed_tls_end **out, struct hed_why *why)
{
    (void)fd, (void)link, (void)tls, (void)host, (void)end, (void)out;
    hed_why_set(why, "this heddle was built without OpenSSL, so it has no TLS");
    return HED_ENOTSUP;
}

int
hed_tls_resume(int fd, const struct hed_link *link, const struct hed_conn_state *s, bool exact,
               struct hed_tls_end **out)
{
    (void)fd, (void)link, (void)s, (void)exact, (void)out;
    return HED_ENOTSUP;
}

int
hed_tls_suspend(struct hed_tls_end *t, struct hed_conn_state *out)
{
    (void)t, (void)out;
    return HED_ENOTSUP;
}

ssize_t
hed_tls_read(struct hed_tls_end *t, void *p, size_t n, uint64_t end)
{
    (void)t, (void)p, (void)n, (void)end;
    return HED_ENOTSUP;
}

int
hed_tls_write(struct hed_tls_end *t, const void *p, size_t n)
{
    (void)t, (void)p, (void)n;
    return HED_ENOTSUP;
}

const struct hed_conn_who *
hed_tls_who(const struct hed_tls_end *t)
{
    static const struct hed_conn_who nobody;

    (void)t;
    return &nobody;
}

void
hed_tls_close(struct hed_tls_end *t, bool bye)
{
    (void)t, (void)bye;
}

#else
typedef int hed_tls_none_is_empty; /* a file must not be empty */
#endif
