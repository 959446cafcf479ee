/* Addresses of variables that a worker has told, so that it need not be asked again while the
 * program is held. See extents.h.
 *
 * A variable stays where it is until its library is closed or the contents of its context are
 * destroyed, and neither the number of a library here nor the generation of a context comes twice.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "driver/driver.h"
#include "move/session/extents.h"
#include "move/session/moving.h"
#include "remote/client.h"

#define BUCKETS 1024u

struct known_variable {
    struct known_variable *next;
    uint64_t library, context;
    uint32_t generation; /* of the context */
    CUresult result;     /* SUCCESS or NOT_FOUND */
    uint64_t at, size;
    char name[];
};

struct hed_remote_known {
    struct known_variable *buckets[BUCKETS];
};

struct hed_remote_known *
hed_remote_known_create(void)
{
    return calloc(1, sizeof(struct hed_remote_known));
}

void
hed_remote_known_free(struct hed_remote_known *k)
{
    for (size_t i = 0; k && i < BUCKETS; i++)
        while (k->buckets[i]) {
            struct known_variable *v = k->buckets[i];

            k->buckets[i] = v->next;
            free(v);
        }
    free(k);
}

static struct known_variable **
bucket_of_variable(struct hed_remote_known *k, uint64_t library, const char *name)
{
    return &k->buckets[(hed_str_hash(name, strlen(name)) + library * 31) % BUCKETS];
}

static uint32_t
generation_of(const struct hed_context *c)
{
    /* Acquire: pairs with the thread that has destroyed what was there before. */
    return atomic_load_explicit(&c->generation, memory_order_acquire);
}

static const struct known_variable *
find_known_variable(struct hed_remote_known *k, uint64_t library, const struct hed_context *c,
                    const char *name)
{
    const struct known_variable *v = *bucket_of_variable(k, library, name);

    while (v && (v->library != library || v->context != c->object.handle ||
                 v->generation != generation_of(c) || strcmp(v->name, name) != 0))
        v = v->next;
    return v;
}

/* If there is no memory, it is asked for again. */
static void
keep_known_variable(struct hed_remote_known *k, const struct known_variable *what, const char *name)
{
    const size_t n = strlen(name) + 1;
    struct known_variable **bucket = bucket_of_variable(k, what->library, name);
    struct known_variable *v = malloc(sizeof *v + n);

    if (!v)
        return;
    *v = *what;
    memcpy(v->name, name, n);
    v->next = *bucket;
    *bucket = v;
}

CUresult
hed_remote_variable_known(struct hed_remote *r, struct hed_context *c, struct hed_code *code,
                          struct hed_code *there, const char *name, uint64_t *at, uint64_t *size)
{
    struct known_variable what = {.library = hed_remote_library(code)->serial,
                                  .context = c->object.handle,
                                  .generation = generation_of(c)};
    const struct known_variable *v =
        r->moving->known ? find_known_variable(r->moving->known, what.library, c, name) : NULL;

    if (v) {
        *at = v->at;
        *size = v->size;
        return v->result;
    }
    what.result = hed_remote_variable_there(r, c, there, false, name, &what.at, &what.size);
    if (r->moving->known && (what.result == CUDA_SUCCESS || what.result == CUDA_ERROR_NOT_FOUND))
        keep_known_variable(r->moving->known, &what, name);
    if (what.result == CUDA_SUCCESS) {
        *at = what.at;
        *size = what.size;
    }
    return what.result;
}
