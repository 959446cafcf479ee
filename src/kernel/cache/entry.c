/* The file of a compiled kernel. See cache.h.
 *
 *   file   = head name features object        name and features end with a NUL each
 *   head   = magic[8] key[32] size compiler crc compile_us abi rows name_size features_size
 *            version[24]                      size and compiler have 8 bytes, the others 4
 *
 * Numbers are those of the machine: an object is of no use for another. `crc` is over all that
 * follows the head. The magic changes with the format; other files are replaced.
 */
#include <string.h>

#include "base/buf.h"
#include "base/crc.h"
#include "base/err.h"
#include "base/str.h"
#include "kernel/cache/cache.h"

struct head {
    char magic[8];
    struct hed_cache_key key;
    uint64_t size; /* of the object */
    uint64_t compiler;
    uint32_t crc;
    uint32_t compile_us;
    uint32_t abi, rows;
    uint32_t name_size, features_size; /* bytes, with the NULs */
    char version[HED_CACHE_VERSION_MAX];
};

_Static_assert(sizeof(struct head) == 104 && sizeof(struct head) <= 128, "no holes");

static const char magic[8] = "HEDKRN4";

/* Are these bytes a text that ends where they do? */
static bool
is_whole_text(const char *text, size_t size)
{
    return memchr(text, 0, size) == text + size - 1;
}

int
hed_cache_entry_read(const void *data, size_t size, uint64_t total, struct hed_cache_entry *out)
{
    const char *name = (const char *)data + sizeof(struct head);
    struct head h;

    if (size < sizeof h || size > total)
        return HED_EFORMAT;
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return memcmp(h.magic, magic, 6) == 0 ? HED_EVERSION : HED_EFORMAT;
    if (h.size > HED_CACHE_OBJECT_MAX || h.name_size == 0 || h.name_size > HED_CACHE_NAME_MAX ||
        h.features_size == 0 || h.features_size > HED_CACHE_FEATURES_MAX ||
        total != sizeof h + h.name_size + h.features_size + h.size ||
        size < sizeof h + h.name_size + h.features_size)
        return HED_EFORMAT;
    if (!is_whole_text(name, h.name_size) || !is_whole_text(name + h.name_size, h.features_size) ||
        !memchr(h.version, 0, sizeof h.version))
        return HED_EFORMAT;
    if (size == total && hed_crc32(0, name, (size_t)(total - sizeof h)) != h.crc)
        return HED_EFORMAT;
    *out = (struct hed_cache_entry){
        .key = h.key,
        .about = {.name = name,
                  .features = name + h.name_size,
                  .version = (const char *)data + offsetof(struct head, version),
                  .compiler = h.compiler,
                  .abi = h.abi,
                  .rows = h.rows,
                  .compile_us = h.compile_us},
        .size = h.size,
        .object = size == total ? name + h.name_size + h.features_size : NULL,
    };
    return 0;
}

void
hed_cache_entry_write(const struct hed_cache_entry *e, struct hed_buf *out)
{
    const struct hed_cache_about *a = &e->about;
    const size_t name = strlen(a->name) + 1, features = strlen(a->features) + 1;
    struct head h = {.key = e->key,
                     .size = e->size,
                     .compiler = a->compiler,
                     .compile_us = a->compile_us,
                     .abi = a->abi,
                     .rows = a->rows,
                     .name_size = (uint32_t)name,
                     .features_size = (uint32_t)features};

    if (name > HED_CACHE_NAME_MAX || features > HED_CACHE_FEATURES_MAX ||
        e->size > HED_CACHE_OBJECT_MAX) {
        out->err = HED_ELIMIT;
        return;
    }
    memcpy(h.magic, magic, sizeof magic);
    (void)hed_str_copy(h.version, sizeof h.version, a->version);
    h.crc = hed_crc32(0, a->name, name);
    h.crc = hed_crc32(h.crc, a->features, features);
    h.crc = hed_crc32(h.crc, e->object, (size_t)e->size);
    hed_buf_add(out, &h, sizeof h);
    hed_buf_add(out, a->name, name);
    hed_buf_add(out, a->features, features);
    hed_buf_add(out, e->object, (size_t)e->size);
}
