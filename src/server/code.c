/* Images, libraries, kernels, functions. See wire/code.h for what is said about them.
 *
 * Invariants:
 * 1. A library's number belongs to the client: it opens a free one, and closes it once.
 * 2. What is passed to the backend as an image is whole: no length in its headers leads out of it.
 * 3. The bytes of an image stay mapped as long as its library, which points into them.
 *
 * Libraries are opened while others have the turn, since that may take long; the client does not
 * use a library's number before it has the answer. So they are guarded by a lock.
 */
#include "server/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "server/images.h"
#include "server/required.h"
#include "server/worker.h"
#include "wire/code.h"

#define CHUNK 1024u
#define CHUNKS 8192u /* functions: as many as there are names */
#define VARIABLES_MAX 65536
#define BLOCK_MAX 1024  /* threads: what every device takes */
#define DESCRIBE_ALL 64 /* a library of no more kernels is described as a whole */

struct library {
    CUlibrary real;
    void *image;
    uint64_t image_size;
    uint32_t kernel_count;
    CUkernel *kernels;
    uint32_t *param_bytes; /* of each kernel; HED_PARAMS_UNKNOWN: not asked yet */
    struct hed_buf records;
    struct hed_required *required; /* NULL: not looked for yet */
};

/* A variable that the client has been told of. */
struct variable {
    uint64_t at, size;
    uint64_t context; /* the client's name of it: the variable goes with it */
    const struct library *library;
};

struct hed_worker_code {
    struct hed_images *images;
    struct hed_lock lock; /* rank HED_RANK_CODE; guards libraries */
    struct library *libraries[HED_CODES_MAX];
    struct hed_worker_function *functions[CHUNKS]; /* by the low half of the name */
    struct variable *variables;                    /* of whoever has the turn */
    size_t variable_count;
};

int
hed_worker_code_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_code *c = calloc(1, sizeof *c);

    if (c)
        c->images = hed_images_create(w->start->images);
    if (!c || !c->images) {
        free(c);
        hed_why_set(why, "no memory");
        return HED_ENOMEM;
    }
    hed_lock_init(&c->lock, HED_RANK_CODE);
    w->code = c;
    return 0;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* In no order with anything else: the turn is passed on first. Bulk is copied before it is looked
 * at: the client could change it in between. What cannot be kept is found missing by OPEN. */
int
hed_do_image(struct hed_worker_lane *l, struct hed_msg *m)
{
    const struct hed_image_body *b = (const struct hed_image_body *)m;
    bool whole;

    hed_turn_pass(l);
    if (!l->worker->code || m->size < sizeof *b || m->bulk == 0 || m->bulk > HED_BULK_CHUNK ||
        m->flags & HED_MSG_WANTS_ANSWER)
        return HED_EFORMAT;

    void *piece = hed_arena_alloc(&l->arena, m->bulk, 16);
    int err = piece ? hed_lane_bulk_read(l->lane, piece, m->bulk) : HED_ENOMEM;

    if (err)
        return err;
    err = hed_images_add(l->worker->code->images, l, b->hash, b->size, b->offset, piece, m->bulk,
                         &whole);
    if (err && err != HED_EFORMAT)
        hed_warn(SERVER, "an image of %llu bytes cannot be kept: %s", (unsigned long long)b->size,
                 hed_err_text(err));
    return err == HED_EFORMAT ? err : 0;
}

/* What the backend gets is a pointer without a length: what is there must say how long it is. */
static bool
is_whole(const void *p, uint64_t size)
{
    const struct hed_bytes b = {p, (size_t)size};
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    struct hed_arch arch;
    uint64_t said;
    int r;

    if (hed_cubin_begins(b))
        return hed_cubin_arch(b, &arch, NULL) == 0;
    if (!hed_fatbin_begins(b, &said))
        return true; /* text, or nothing at all: the 0 behind it ends it */
    if (said > size || hed_fatbin_walk(b, &w, NULL) != 0)
        return false;
    while ((r = hed_fatbin_next(&w, &e, NULL)) > 0)
        if (e.kind == HED_FATBIN_CUBIN && e.packing == HED_PACKING_NONE &&
            hed_cubin_arch(e.stored, &arch, NULL) != 0)
            return false;
    return r == 0;
}

/* ---- describing ------------------------------------------------------------------------------ */

static void
put_params(struct hed_worker *w, CUkernel kernel, struct hed_buf *out, uint32_t *count,
           uint32_t *bytes)
{
    *bytes = 0;
    for (*count = 0; *count < HED_PARAMS_MAX; ++*count) {
        size_t offset = 0, size = 0;

        if (hed_worker_do(w, cuKernelGetParamInfo, .kernel = kernel, .paramIndex = *count,
                          .paramOffset = &offset, .paramSize = &size) != CUDA_SUCCESS)
            return;
        if (offset > HED_PARAMS_MAX || size > HED_PARAMS_MAX - offset)
            return;

        const struct hed_wire_param p = {(uint32_t)offset, (uint32_t)size};

        if (out)
            hed_buf_add(out, &p, sizeof p);
        *bytes = offset + size > *bytes ? (uint32_t)(offset + size) : *bytes;
    }
}

static CUresult
get_attributes(struct hed_worker *w, CUkernel kernel, int device, int32_t *to)
{
    CUfunction f = NULL;

    for (int i = 0; i < HED_WIRE_FUNCTION_ATTRIBUTES; i++) {
        CUresult r =
            hed_worker_do(w, cuKernelGetAttribute, .pi = &to[i], .attrib = (CUfunction_attribute)i,
                          .kernel = kernel, .dev = device);

        /* Where no context is needed for it on this device; else in the current one. */
        if (r != CUDA_SUCCESS && !f)
            r = hed_worker_do(w, cuKernelGetFunction, .pFunc = &f, .kernel = kernel);
        if (f)
            r = hed_worker_do(w, cuFuncGetAttribute, .pi = &to[i],
                              .attrib = (CUfunction_attribute)i, .hfunc = f);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

/* Adds a kernel's record. */
static CUresult
put_record(struct hed_worker *w, struct library *lib, uint32_t index, int device, bool with_name,
           bool describe, struct hed_buf *out)
{
    static const char zeros[8];
    const size_t at = out->size;
    struct hed_wire_kernel k = {.described = describe};
    const char *name = NULL;
    CUresult r = CUDA_SUCCESS;

    hed_buf_add(out, &k, sizeof k);
    if (describe) {
        r = get_attributes(w, lib->kernels[index], device, k.attributes);
        put_params(w, lib->kernels[index], out, &k.params, &lib->param_bytes[index]);
    }
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuKernelGetName, .name = &name, .hfunc = lib->kernels[index]);
    if (r != CUDA_SUCCESS)
        return r;
    /* On a GPU only a kernel with bounds can have them: most images are not read for it. */
    if (describe && (w->backend == HED_BACKEND_CPU ||
                     k.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] < BLOCK_MAX)) {
        if (!lib->required)
            lib->required = hed_required_read(lib->image, lib->image_size);
        (void)hed_required_find(lib->required, name, k.required);
    }
    if (with_name) {
        k.name = (uint32_t)strlen(name) + 1;
        hed_buf_add(out, name, k.name);
    }
    hed_buf_add(out, zeros, (8 - (out->size - at) % 8) % 8);
    if (out->err)
        return CUDA_ERROR_OUT_OF_MEMORY;
    k.size = (uint32_t)(out->size - at);
    memcpy(out->data + at, &k, sizeof k);
    return CUDA_SUCCESS;
}

/* ---- libraries ------------------------------------------------------------------------------- */

static struct library *
library_of(struct hed_worker_code *c, uint32_t number)
{
    struct library *lib;

    if (number >= HED_CODES_MAX)
        return NULL;
    hed_lock(&c->lock);
    lib = c->libraries[number];
    hed_unlock(&c->lock);
    return lib;
}

static void
library_free(struct hed_worker *w, struct library *lib)
{
    const bool gone =
        !lib->real || hed_worker_do(w, cuLibraryUnload, .library = lib->real) == CUDA_SUCCESS;

    /* What the backend may still point into stays. */
    if (lib->image && gone)
        hed_images_unmap(lib->image, lib->image_size);
    hed_buf_fini(&lib->records);
    hed_required_free(lib->required);
    free(lib->kernels);
    free(lib->param_bytes);
    free(lib);
}

/* Names of all kernels, and the rest of them where they are few. */
static CUresult
enumerate(struct hed_worker *w, struct library *lib, int device)
{
    unsigned n = 0;
    CUresult r = hed_worker_do(w, cuLibraryGetKernelCount, .count = &n, .lib = lib->real);

    if (r != CUDA_SUCCESS)
        return r;
    if (n > HED_KERNELS_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    lib->kernels = calloc(n + (size_t)1, sizeof *lib->kernels);
    lib->param_bytes = calloc(n + (size_t)1, sizeof *lib->param_bytes);
    if (!lib->kernels || !lib->param_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (n)
        r = hed_worker_do(w, cuLibraryEnumerateKernels, .kernels = lib->kernels, .numKernels = n,
                          .lib = lib->real);
    lib->kernel_count = r == CUDA_SUCCESS ? n : 0;
    for (uint32_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
        lib->param_bytes[i] = HED_PARAMS_UNKNOWN;
        r = put_record(w, lib, i, device, true, n <= DESCRIBE_ALL, &lib->records);
    }
    return r;
}

static CUresult
load(struct hed_worker *w, struct library *lib, const struct hed_open_body *b, char *log)
{
    unsigned error_room = HED_CODE_LOG_MAX / 2, info_room = HED_CODE_LOG_MAX / 2;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    char *info = log + error_room;
    void *values[] = {log, (void *)(uintptr_t)error_room, info, (void *)(uintptr_t)info_room};
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *yes = (void *)(uintptr_t)1;

    CUresult r = hed_worker_do(w, cuLibraryLoadData, .library = &lib->real, .code = lib->image,
                               .jitOptions = options, .jitOptionsValues = values,
                               .numJitOptions = 4, .libraryOptions = &preserved,
                               .libraryOptionValues = &yes, .numLibraryOptions = 1);

    if (r != CUDA_SUCCESS)
        lib->real = NULL;
    else
        r = enumerate(w, lib, b->device);
    log[error_room - 1] = info[info_room - 1] = '\0';
    /* One log travels: that of the errors, or, where there are none, the other. */
    if (!log[0])
        memmove(log, info, info_room);
    return r;
}

/* The answer, and as much of the records as goes with it: copied, since another lane may close the
 * library as soon as it has its number. */
static int
answer_open(struct hed_worker_lane *l, const struct hed_open_body *b, CUresult r,
            struct library *lib, const char *log)
{
    struct hed_worker_code *c = l->worker->code;
    const uint32_t log_size =
        (uint32_t)strnlen(log, b->log < HED_CODE_LOG_MAX ? b->log : HED_CODE_LOG_MAX);
    const uint64_t all = lib ? lib->records.size : 0, room = HED_BULK_CHUNK - log_size;
    const uint64_t some = all < room ? all : room;
    struct hed_open_answer a = {
        .log = log_size, .kernels = lib ? lib->kernel_count : 0, .records = all};
    void *first = hed_arena_alloc(&l->arena, some + 1, 16);

    if (!first)
        return HED_ENOMEM;
    if (some)
        memcpy(first, lib->records.data, some);
    if (lib) {
        if (some == all)
            hed_buf_fini(&lib->records);
        hed_lock(&c->lock);
        c->libraries[b->code] = lib;
        hed_unlock(&c->lock);
    }

    int err = hed_worker_answer_with(l, &b->head, (int)r, &a, sizeof a, log_size + some);

    if (!err && log_size)
        err = hed_lane_bulk_write(l->lane, log, log_size);
    return err || !some ? err : hed_lane_bulk_write(l->lane, first, some);
}

static int
open_library(struct hed_worker_lane *l, struct hed_open_body *b)
{
    struct hed_worker_code *c = l->worker->code;
    char *log = hed_arena_alloc(&l->arena, HED_CODE_LOG_MAX, 16);
    struct library *lib = calloc(1, sizeof *lib);
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    if (!log || !lib || b->code >= HED_CODES_MAX || library_of(c, b->code) || b->device < 0 ||
        b->device >= l->worker->device_count) {
        free(lib);
        return HED_EFORMAT;
    }
    memset(log, 0, HED_CODE_LOG_MAX);
    hed_turn_pass(l);
    hed_buf_init(&lib->records, HED_RECORDS_MAX);
    lib->image_size = b->size;

    const int err = b->size && b->size <= HED_IMAGE_MAX
                        ? hed_images_map(c->images, b->hash, b->size, &lib->image)
                        : HED_EFORMAT;

    if (err == HED_ENOTFOUND)
        r = CUDA_ERROR_FILE_NOT_FOUND; /* it has been put out meanwhile: to be sent again */
    else if (err == 0)
        r = is_whole(lib->image, b->size) ? load(l->worker, lib, b, log) : CUDA_ERROR_INVALID_IMAGE;
    if (r != CUDA_SUCCESS) {
        library_free(l->worker, lib);
        lib = NULL;
    }

    return answer_open(l, b, r, lib, log);
}

static int
tell_more(struct hed_worker_lane *l, const struct hed_open_body *b, struct library *lib)
{
    struct hed_open_answer a = {.kernels = lib->kernel_count, .records = lib->records.size};

    if (b->offset >= lib->records.size)
        return HED_EFORMAT;

    const uint64_t rest = lib->records.size - b->offset;
    const uint64_t some = rest < HED_BULK_CHUNK ? rest : HED_BULK_CHUNK;
    int err = hed_worker_answer_with(l, &b->head, CUDA_SUCCESS, &a, sizeof a, some);

    if (!err)
        err = hed_lane_bulk_write(l->lane, lib->records.data + b->offset, some);
    if (some == rest)
        hed_buf_fini(&lib->records);
    return err;
}

static bool
note_variable(struct hed_worker_code *c, const struct variable *v)
{
    struct variable *more;

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
forget_variables(struct hed_worker_code *c, const struct library *lib)
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
        const struct variable *v = &c->variables[i];

        if (at >= v->at && at - v->at < v->size && size <= v->size - (at - v->at))
            return hed_name_real(w->names, v->context, &real) == 0;
    }
    return false;
}

static int
tell_variable(struct hed_worker_lane *l, const struct hed_open_body *b, struct library *lib)
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
        r = hed_worker_do(l->worker, cuLibraryGetGlobal, .dptr = &at, .bytes = &size,
                          .library = lib->real, .name = name);
    else
        r = hed_worker_do(l->worker, cuLibraryGetManaged, .dptr = &at, .bytes = &size,
                          .library = lib->real, .name = name);
    a.at = at;
    a.size = size;
    if (r == CUDA_SUCCESS && b->op == HED_OPEN_GLOBAL &&
        !note_variable(l->worker->code, &(struct variable){at, size, b->head.context, lib}))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return hed_worker_answer_with(l, &b->head, (int)r, &a, sizeof a, 0);
}

int
hed_do_open(struct hed_worker_lane *l, struct hed_msg *m)
{
    struct hed_open_body *b = (struct hed_open_body *)m;
    struct hed_worker_code *c = l->worker->code;
    const bool answered = m->flags & HED_MSG_WANTS_ANSWER;

    if (!c || m->size < sizeof *b || m->bulk || answered != (b->op != HED_OPEN_CLOSE))
        return HED_EFORMAT;
    if (b->op == HED_OPEN_LOAD)
        return open_library(l, b);

    struct library *lib = library_of(c, b->code);

    if (!lib)
        return HED_EFORMAT;
    switch (b->op) {
    case HED_OPEN_MORE:
        return tell_more(l, b, lib);
    case HED_OPEN_GLOBAL:
    case HED_OPEN_MANAGED:
        return tell_variable(l, b, lib);
    case HED_OPEN_CLOSE:
        hed_lock(&c->lock);
        c->libraries[b->code] = NULL;
        hed_unlock(&c->lock);
        forget_variables(c, lib);
        library_free(l->worker, lib);
        return 0;
    default:
        return HED_EFORMAT;
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

struct hed_worker_function *
hed_worker_function(struct hed_worker_code *c, uint64_t name)
{
    const uint32_t index = (uint32_t)name;
    struct hed_worker_function *chunk = index / CHUNK < CHUNKS ? c->functions[index / CHUNK] : NULL;

    return chunk && chunk[index % CHUNK].name == name && name ? &chunk[index % CHUNK] : NULL;
}

int
hed_worker_function_add(struct hed_worker *w, uint64_t name, CUfunction real, uint32_t param_bytes)
{
    struct hed_worker_code *c = w->code;
    const uint32_t index = (uint32_t)name;

    if (index / CHUNK >= CHUNKS)
        return HED_EFORMAT;

    struct hed_worker_function **chunk = &c->functions[index / CHUNK];

    if (!*chunk && !(*chunk = calloc(CHUNK, sizeof **chunk)))
        return HED_ENOMEM;
    if ((*chunk)[index % CHUNK].name || !hed_name_fits(name, "function") ||
        hed_name_bind(w->names, name, (uint64_t)(uintptr_t)real) != 0)
        return HED_EFORMAT;
    (*chunk)[index % CHUNK] = (struct hed_worker_function){name, real, param_bytes};
    return 0;
}

static int
forget_function(struct hed_worker *w, uint64_t name)
{
    struct hed_worker_function *f = hed_worker_function(w->code, name);

    if (f) {
        (void)hed_name_unbind(w->names, name, NULL);
        *f = (struct hed_worker_function){.name = 0};
    }
    return 0; /* it may never have been made */
}

static CUresult
make_function(struct hed_worker *w, struct library *lib, const struct hed_kernel_body *b, int *err)
{
    CUkernel kernel = NULL;
    CUfunction real = NULL;
    CUresult r = CUDA_SUCCESS;
    uint32_t params;

    if (w->hollow) { /* nothing is known of its kernels, and any will do */
        r = hed_worker_do(w, cuLibraryGetKernel, .pKernel = &kernel, .library = lib->real,
                          .name = "any");
    } else {
        kernel = lib->kernels[b->index];
        if (lib->param_bytes[b->index] == HED_PARAMS_UNKNOWN)
            put_params(w, kernel, NULL, &params, &lib->param_bytes[b->index]);
    }
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuKernelGetFunction, .pFunc = &real, .kernel = kernel);
    if (r == CUDA_SUCCESS)
        *err = hed_worker_function_add(w, b->function, real,
                                       w->hollow ? HED_PARAMS_UNKNOWN : lib->param_bytes[b->index]);
    return r;
}

static int
answer_kernel(struct hed_worker_lane *l, const struct hed_kernel_body *b, struct library *lib)
{
    struct hed_answer a = {.result = 0};
    struct hed_buf record;
    CUresult r = CUDA_ERROR_NOT_FOUND;

    hed_buf_init(&record, HED_BULK_CHUNK);
    if (!l->worker->hollow)
        r = put_record(l->worker, lib, b->index, b->device, false, true, &record);

    const uint64_t bulk = r == CUDA_SUCCESS ? record.size : 0;
    int err = hed_worker_answer_with(l, &b->head, (int)r, &a, sizeof a, bulk);

    if (!err && bulk)
        err = hed_lane_bulk_write(l->lane, record.data, bulk);
    hed_buf_fini(&record);
    return err;
}

int
hed_do_kernel(struct hed_worker_lane *l, struct hed_msg *m)
{
    const struct hed_kernel_body *b = (const struct hed_kernel_body *)m;
    struct hed_worker *w = l->worker;
    int err = 0;

    if (!w->code || m->size < sizeof *b || m->bulk)
        return HED_EFORMAT;
    if (b->forget)
        return forget_function(w, b->function);

    struct library *lib = library_of(w->code, b->code);

    if (!lib || b->device < 0 || b->device >= w->device_count ||
        (b->index >= lib->kernel_count && !w->hollow))
        return HED_EFORMAT;
    if (b->function)
        hed_worker_failed(w, m->context, make_function(w, lib, b, &err));
    return err || !(m->flags & HED_MSG_WANTS_ANSWER) ? err : answer_kernel(l, b, lib);
}
