/* A cache in the test's scratch folder. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "harness/unit.h"
#include "kernel/cache/cache.h"

static inline struct hed_cache *
make_cache(uint64_t limit)
{
    const char *scratch = getenv("HED_SCRATCH");
    static int number;
    char folder[1024];
    struct hed_cache *c;

    snprintf(folder, sizeof folder, "%s/kernels.%d.%d", scratch ? scratch : "/tmp", (int)getpid(),
             number++);
    c = hed_cache_create(folder, limit);
    assert_non_null(c);
    return c;
}

static inline struct hed_cache_key
key_of(const char *name)
{
    struct hed_cache_key k;
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add_text(&h, name);
    hed_hash_end(&h, k.hash);
    return k;
}

/* An entry whose object is the name. */
static inline void
store_named(struct hed_cache *c, const char *name, const char *features)
{
    const struct hed_cache_key key = key_of(name);
    const struct hed_cache_about about = {.name = name,
                                          .features = features,
                                          .version = "1.2.3",
                                          .compiler = 77,
                                          .abi = 3,
                                          .rows = 1,
                                          .compile_us = 1000};

    hed_cache_put(c, &key, &about, name, strlen(name));
}

static inline bool
has_named(struct hed_cache *c, const char *name)
{
    const struct hed_cache_key key = key_of(name);
    struct hed_buf out;
    uint32_t us;
    bool right;

    hed_buf_init(&out, 1 << 20);
    right = hed_cache_get(c, &key, &out, &us) && out.size == strlen(name) &&
            memcmp(out.data, name, out.size) == 0 && us == 1000;
    hed_buf_fini(&out);
    return right;
}
