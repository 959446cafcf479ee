/* Functions for bytes and strings, for a library without a C library. See bare.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *
memcpy(void *restrict to, const void *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *
memset(void *p, int value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)value;
    return p;
}

int
memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;

    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return p[i] - q[i];
    return 0;
}

void *
memchr(const void *p, int value, size_t n)
{
    for (const unsigned char *at = p; n > 0; at++, n--)
        if (*at == (unsigned char)value)
            return (void *)(uintptr_t)at;
    return NULL;
}

void *
memmem(const void *in, size_t size, const void *what, size_t n)
{
    for (const char *at = in; size >= n; at++, size--)
        if (memcmp(at, what, n) == 0)
            return (void *)(uintptr_t)at;
    return NULL;
}

size_t
strlen(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return n;
}

size_t
strnlen(const char *s, size_t most)
{
    size_t n = 0;

    while (n < most && s[n])
        n++;
    return n;
}

int
strncmp(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] || a[i] == '\0')
            return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}

int
strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *
strchr(const char *s, int c)
{
    for (; *s != (char)c; s++)
        if (*s == '\0')
            return NULL;
    return (char *)(uintptr_t)s;
}

char *
strrchr(const char *s, int c)
{
    const char *last = NULL;

    do {
        if (*s == (char)c)
            last = s;
    } while (*s++);
    return (char *)(uintptr_t)last;
}

size_t
strspn(const char *s, const char *accepted)
{
    size_t n = 0;

    while (s[n] && strchr(accepted, s[n]))
        n++;
    return n;
}

size_t
strcspn(const char *s, const char *refused)
{
    size_t n = 0;

    while (s[n] && !strchr(refused, s[n]))
        n++;
    return n;
}
