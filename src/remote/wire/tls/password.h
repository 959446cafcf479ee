/* A callback of OpenSSL that never asks for the password of a key on the program's terminal. */
#pragma once

static inline int
hed_tls_no_password(char *p, int n, int writing, void *arg)
{
    (void)p, (void)n, (void)writing, (void)arg;
    return -1;
}
