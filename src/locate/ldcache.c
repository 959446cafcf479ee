/* Reading /etc/ld.so.cache. See ldcache.h. The layout is that of glibc's dl-cache.h:
 *
 *     "glibc-ld.so.cache1.1" u32 entries, u32 string bytes, 20 bytes more
 *     entries: i32 flags, u32 key, u32 value, u32 unused, u64 hardware capabilities
 *     strings; key and value are offsets of zero-terminated names from the magic
 *
 * Old systems have another table in front, hence the search for the magic.
 */
#include "locate/ldcache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"

#define CACHE_PATH "/etc/ld.so.cache"
#define CACHE_MAX (64u * 1024 * 1024) /* bytes */

#define MAGIC "glibc-ld.so.cache1.1"
#define HEADER_SIZE 48
#define ENTRY_SIZE 24

struct cache {
    const char *data; /* from the magic on */
    size_t size;
};

static uint32_t
get_u32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* The string at an offset, or NULL if it does not end inside. */
static const char *
cache_string(const struct cache *c, uint32_t offset)
{
    if (offset >= c->size || !memchr(c->data + offset, 0, c->size - offset))
        return NULL;
    return c->data + offset;
}

int
hed_ldcache_each_in(const void *data, size_t size, const char *name,
                    void (*fn)(void *arg, const char *path), void *arg)
{
    const char *start = memmem(data, size, MAGIC, strlen(MAGIC));

    if (!start)
        return HED_EFORMAT;

    const struct cache c = {start, size - (size_t)(start - (const char *)data)};

    if (c.size < HEADER_SIZE)
        return HED_ETRUNC;

    const size_t count = get_u32(c.data + strlen(MAGIC));

    if (count > (c.size - HEADER_SIZE) / ENTRY_SIZE)
        return HED_ETRUNC;
    for (size_t i = 0; i < count; i++) {
        const char *entry = c.data + HEADER_SIZE + i * ENTRY_SIZE;
        const char *key = cache_string(&c, get_u32(entry + 4));
        const char *value = cache_string(&c, get_u32(entry + 8));

        if (key && value && strcmp(key, name) == 0)
            fn(arg, value);
    }
    return 0;
}

int
hed_ldcache_each(const char *name, void (*fn)(void *arg, const char *path), void *arg)
{
    struct stat st;
    char *data = NULL;
    int err = 0;
    const int fd = open(CACHE_PATH, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return hed_err_from_errno(errno);
    if (fstat(fd, &st) != 0)
        err = hed_err_from_errno(errno);
    else if (st.st_size <= 0 || (uint64_t)st.st_size > CACHE_MAX)
        err = HED_ELIMIT;
    else if (!(data = malloc((size_t)st.st_size)))
        err = HED_ENOMEM;
    if (!err)
        err = hed_read_all(fd, data, (size_t)st.st_size);
    if (!err)
        err = hed_ldcache_each_in(data, (size_t)st.st_size, name, fn, arg);
    free(data);
    close(fd);
    return err;
}
