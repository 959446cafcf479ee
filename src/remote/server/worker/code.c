/* Images, libraries, kernels, functions. See remote/wire/code.h for their messages.
 *
 * Invariants:
 * 1. The client chooses a library's number: it opens a free one, and closes it once.
 * 2. An image that is passed to the backend is intact: no length in its headers leads out of it.
 * 3. The bytes of an image stay mapped as long as its library, which points into them.
 *
 * Opening a library may take long, so later tickets proceed meanwhile. The client does not use a
 * library's number before it has the answer. Therefore a lock guards the libraries.
 */
#include "remote/server/worker/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "kernel/fatbin.h"
#include "remote/server/worker/images.h"
#include "remote/server/worker/intact.h"
#include "remote/server/worker/library.h"
#include "remote/server/worker/linked.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/code.h"

#define VARIABLES_MAX 65536

/* Images in memory count as pinned memory of the client. */
static bool
take_image_memory(void *worker, uint64_t bytes)
{
    return hed_lease_take(worker, HED_LEASE_SOCKET_HOST, bytes, bytes) == bytes;
}

static void
give_image_memory(void *worker, uint64_t bytes)
{
    hed_lease_give(worker, HED_LEASE_SOCKET_HOST, bytes);
}

int
hed_worker_code_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_code *c = calloc(1, sizeof *c);

    if (c)
        c->images = hed_images_create(w->start->images);
    if (!c || !c->images) {
        free(c);
        hed_why_set(why, "not enough memory for the client's code");
        return HED_ENOMEM;
    }
    hed_images_limit(c->images, &(struct hed_images_limits){.folder = w->start->images_most,
                                                            .reserve = w->start->images_reserve,
                                                            .take = take_image_memory,
                                                            .give = give_image_memory,
                                                            .arg = w});
    hed_lock_init(&c->lock, HED_RANK_CODE);
    w->code = c;
    return 0;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Images are not ordered with anything else, so the next ticket proceeds at once. Bulk is copied
 * before it is checked, because the client could change it in between. If an image cannot be
 * stored, HED_MSG_OPEN does not find it. */
int
hed_do_image(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_image_body *b = (const struct hed_image_body *)m;
    bool complete;

    hed_ticket_pass(ch);
    if (!ch->worker->code || m->size < sizeof *b || m->bulk == 0 || m->bulk > HED_BULK_CHUNK ||
        m->flags & HED_MSG_WANTS_ANSWER)
        return HED_EFORMAT;

    void *piece = hed_arena_alloc(&ch->arena, m->bulk, 16);
    int err = piece ? hed_channel_bulk_read(ch->channel, piece, m->bulk) : HED_ENOMEM;

    if (err)
        return err;
    err = hed_images_add(ch->worker->code->images, ch, b->hash, b->size, b->offset, piece, m->bulk,
                         &complete);
    if (err && err != HED_EFORMAT)
        hed_warn(SERVER, "cannot store an image of %llu bytes: %s", (unsigned long long)b->size,
                 hed_err_text(err));
    return err == HED_EFORMAT ? err : 0;
}

/* ---- libraries ------------------------------------------------------------------------------- */

struct hed_worker_library *
hed_worker_library(struct hed_worker_code *c, uint32_t number)
{
    struct hed_worker_library *lib;

    if (number >= HED_CODES_MAX)
        return NULL;
    hed_lock(&c->lock);
    lib = c->libraries[number];
    hed_unlock(&c->lock);
    return lib;
}

/* Answers, with as much of the contents as fits. They are copied first, since another channel may
 * close the library as soon as it has its number. A new library is entered under its number. */
static int
answer_open(struct hed_worker_channel *ch, const struct hed_open_body *b, CUresult r,
            struct hed_worker_library *lib, const char *log)
{
    struct hed_worker_code *c = ch->worker->code;
    const uint32_t log_size =
        (uint32_t)strnlen(log, b->log < HED_CODE_LOG_MAX ? b->log : HED_CODE_LOG_MAX);
    const uint64_t all = lib ? lib->contents.size : 0, room = HED_BULK_CHUNK - log_size;
    const uint64_t some = all < room ? all : room;
    struct hed_open_answer a = {
        .log = log_size, .kernels = lib ? lib->kernel_count : 0, .contents = all};
    void *first = hed_arena_alloc(&ch->arena, some + 1, 16);

    if (!first)
        return HED_ENOMEM;
    if (some)
        memcpy(first, lib->contents.data, some);
    if (lib) {
        if (some == all)
            hed_buf_fini(&lib->contents);
        hed_lock(&c->lock);

        const bool taken = c->libraries[b->code] && c->libraries[b->code] != lib;

        /* Release: pairs with the acquire in hed_do_open(). */
        atomic_store_explicit(&lib->busy, false, memory_order_release);
        if (!taken)
            c->libraries[b->code] = lib;
        hed_unlock(&c->lock);
        if (taken) { /* another channel has opened one under this number meanwhile */
            hed_worker_library_free(ch->worker, lib);
            return HED_EFORMAT;
        }
    }

    int err = hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, log_size + some);

    if (!err && log_size)
        err = hed_channel_bulk_write(ch->channel, log, log_size);
    return err || !some ? err : hed_channel_bulk_write(ch->channel, first, some);
}

/* Is the image intact? */
static bool
is_library_intact(const struct hed_worker_library *lib, bool strict)
{
    return hed_linked_begins(lib->image, lib->image_size)
               ? hed_linked_is_intact(lib->image, lib->image_size, strict)
               : hed_image_is_intact(lib->image, lib->image_size, strict);
}

static CUresult
load_image(struct hed_worker *w, struct hed_worker_library *lib, const struct hed_open_body *b)
{
    int err;

    lib->image_size = b->size;
    err = b->size && b->size <= HED_IMAGE_MAX
              ? hed_images_map(w->code->images, b->hash, b->size, &lib->image)
              : HED_EFORMAT;
    if (err == HED_ENOTFOUND) /* never sent, or removed meanwhile */
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (err)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!is_library_intact(lib, w->backend == HED_BACKEND_GPU))
        return CUDA_ERROR_INVALID_IMAGE;
    if (hed_linked_begins(lib->image, lib->image_size)) {
        lib->wrapper = hed_linked_wrap(lib->image, lib->image_size);
        if (!lib->wrapper)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return hed_worker_library_load(w, lib, b);
}

/* Creates a library. It is entered under its number, which is free, when the answer is sent. */
static int
create_worker_library(struct hed_worker *w, const struct hed_open_body *b,
                      struct hed_worker_library **out)
{
    struct hed_worker_library *lib = NULL;
    int err;

    if (b->code >= HED_CODES_MAX || b->device < 0 || b->device >= w->device_count)
        return HED_EFORMAT;
    lib = calloc(1, sizeof *lib);
    if (!lib)
        return HED_ENOMEM;
    hed_buf_init(&lib->contents, HED_CONTENTS_MAX);
    err = hed_jit_room_create(b, &lib->jit);
    if (err)
        hed_worker_library_free(w, lib);
    else
        *out = lib;
    return err;
}

/* Loads a library or does a step of linking. That may take long, so the next ticket proceeds. */
static int
open_library(struct hed_worker_channel *ch, struct hed_open_body *b, struct hed_worker_library *lib)
{
    char *log = hed_arena_alloc(&ch->arena, HED_CODE_LOG_MAX, 16);
    const bool is_new = !lib;
    CUresult r;
    int err = !log ? HED_ENOMEM : is_new ? create_worker_library(ch->worker, b, &lib) : 0;

    if (err)
        return err;
    /* Relaxed: ticket order makes it visible. */
    atomic_store_explicit(&lib->busy, true, memory_order_relaxed);
    hed_ticket_pass(ch);
    r = b->op == HED_OPEN_LOAD ? load_image(ch->worker, lib, b)
                               : hed_worker_link(ch->worker, lib, b, &err);
    (void)hed_str_copy(log, HED_CODE_LOG_MAX, hed_jit_room_log(lib->jit));
    if (r != CUDA_SUCCESS && is_new) {
        hed_worker_library_free(ch->worker, lib);
        lib = NULL;
    }
    return err ? err : answer_open(ch, b, r, lib, log);
}

static int
answer_more(struct hed_worker_channel *ch, const struct hed_open_body *b,
            struct hed_worker_library *lib)
{
    struct hed_open_answer a = {.kernels = lib->kernel_count, .contents = lib->contents.size};

    if (b->offset >= lib->contents.size)
        return HED_EFORMAT;

    const uint64_t rest = lib->contents.size - b->offset;
    const uint64_t some = rest < HED_BULK_CHUNK ? rest : HED_BULK_CHUNK;
    int err = hed_worker_answer_with(ch, &b->head, CUDA_SUCCESS, &a, sizeof a, some);

    if (!err)
        err = hed_channel_bulk_write(ch->channel, lib->contents.data + b->offset, some);
    if (some == rest)
        hed_buf_fini(&lib->contents);
    return err;
}

static bool
note_variable(struct hed_worker_code *c, const struct hed_worker_variable *v)
{
    struct hed_worker_variable *more;

    for (size_t i = 0; i < c->variable_count; i++) {
        if (c->variables[i].at == v->at) {
            c->variables[i] = *v;
            return true;
        }
    }
    if (c->variable_count == VARIABLES_MAX)
        return false;
    more = realloc(c->variables, (c->variable_count + 1) * sizeof *more);
    if (!more)
        return false;
    c->variables = more;
    c->variables[c->variable_count++] = *v;
    return true;
}

static void
forget_variables(struct hed_worker_code *c, const struct hed_worker_library *lib)
{
    size_t n = 0;

    for (size_t i = 0; i < c->variable_count; i++)
        if (c->variables[i].library != lib)
            c->variables[n++] = c->variables[i];
    c->variable_count = n;
}

bool
hed_worker_variable_covers(struct hed_worker *w, uint64_t at, uint64_t size)
{
    const struct hed_worker_code *c = w->code;
    uint64_t real;

    for (size_t i = 0; c && i < c->variable_count; i++) {
        const struct hed_worker_variable *v = &c->variables[i];

        if (at >= v->at && at - v->at < v->size && size <= v->size - (at - v->at))
            return hed_name_real(w->names, v->context, &real) == 0;
    }
    return false;
}

static int
answer_variable(struct hed_worker_channel *ch, const struct hed_open_body *b,
                struct hed_worker_library *lib)
{
    const char *name = (const char *)(b + 1);
    const size_t room = b->head.size - sizeof *b;
    struct hed_variable_answer a = {.at = 0};
    CUdeviceptr at = 0;
    size_t size = 0;
    CUresult r;

    if (room == 0 || room > HED_CODE_NAME_MAX || strnlen(name, room) == room)
        return HED_EFORMAT;
    if (b->op == HED_OPEN_GLOBAL)
        r = hed_worker_do(ch->worker, cuLibraryGetGlobal, .dptr = &at, .bytes = &size,
                          .library = lib->real, .name = name);
    else
        r = hed_worker_do(ch->worker, cuLibraryGetManaged, .dptr = &at, .bytes = &size,
                          .library = lib->real, .name = name);
    a.at = at;
    a.size = size;
    /* A managed variable belongs to no context, only to its library. */
    const uint64_t context = b->op == HED_OPEN_GLOBAL ? b->head.context : 0;

    if (r == CUDA_SUCCESS &&
        !note_variable(ch->worker->code, &(struct hed_worker_variable){at, size, context, lib}))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, 0);
}

/* Clients that use managed memory ask once per library. */
static int
answer_atomics(struct hed_worker_channel *ch, const struct hed_open_body *b,
               const struct hed_worker_library *lib)
{
    const struct hed_bytes image = {lib->image, (size_t)lib->image_size};
    struct hed_atomics_answer a = {.system = 0};
    struct hed_bytes part;

    if (!lib->wrapper)
        a.system = hed_image_has_system_atomics(image);
    for (uint32_t i = 0;
         !a.system && lib->wrapper && hed_linked_at(lib->image, lib->image_size, i, &part); i++)
        a.system = hed_image_has_system_atomics(part);
    return hed_worker_answer_with(ch, &b->head, CUDA_SUCCESS, &a, sizeof a, 0);
}

int
hed_do_open(struct hed_worker_channel *ch, struct hed_msg *m)
{
    struct hed_open_body *b = (struct hed_open_body *)m;
    struct hed_worker_code *c = ch->worker->code;
    const bool answered = m->flags & HED_MSG_WANTS_ANSWER;

    if (!c || m->size < sizeof *b || m->bulk || answered != (b->op != HED_OPEN_CLOSE))
        return HED_EFORMAT;

    struct hed_worker_library *lib = hed_worker_library(c, b->code);

    if (b->op == HED_OPEN_LOAD || (b->op == HED_OPEN_LINK && !lib))
        return lib ? HED_EFORMAT : open_library(ch, b, NULL);
    /* Acquire: pairs with the release in answer_open(); the work of the thread that was busy is
     * visible. */
    if (!lib || atomic_load_explicit(&lib->busy, memory_order_acquire))
        return HED_EFORMAT;
    switch (b->op) {
    case HED_OPEN_LINK:
        return lib->links ? open_library(ch, b, lib) : HED_EFORMAT;
    case HED_OPEN_MORE:
        return answer_more(ch, b, lib);
    case HED_OPEN_GLOBAL:
    case HED_OPEN_MANAGED:
        return lib->links ? HED_EFORMAT : answer_variable(ch, b, lib);
    case HED_OPEN_ATOMICS:
        return lib->links ? HED_EFORMAT : answer_atomics(ch, b, lib);
    case HED_OPEN_CLOSE:
        hed_lock(&c->lock);
        c->libraries[b->code] = NULL;
        hed_unlock(&c->lock);
        forget_variables(c, lib);
        hed_worker_functions_forget(ch->worker, 0, lib);
        hed_worker_library_free(ch->worker, lib);
        return 0;
    default:
        return HED_EFORMAT;
    }
}
