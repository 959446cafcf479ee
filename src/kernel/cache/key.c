/* What a compiled kernel depends on. See cache.h. */
#include "kernel/cache/cache.h"

struct hed_cache_key
hed_cache_key_of(const struct hed_cache_origin *o)
{
    const uint64_t numbers[] = {o->abi,      o->rows,    o->level, o->check_alignment,
                                o->confined, o->compiler};
    struct hed_cache_key key;
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, o->code, HED_HASH_SIZE);
    hed_hash_add_text(&h, o->kernel);
    hed_hash_add_text(&h, HED_VERSION);
    hed_hash_add_text(&h, o->features);
    hed_hash_add(&h, numbers, sizeof numbers);
    hed_hash_end(&h, key.hash);
    return key;
}
