/* Modules and symbols: see registry.h.
 *
 * Invariants:
 * 1. A slot's key is written after its value. So a reader who finds a key also sees its value,
 *    unless the symbol is being removed: then the program uses what it unloads at the same time.
 * 2. A table is full to at most 3/4, gone slots included, so that every search ends. A gone slot is
 *    never followed by a free one: it becomes free itself.
 * 3. Readers may still use a table that was replaced; tables are never freed. A table is replaced
 *    by a larger one only: symbols that come and go take turns in the same slots.
 * 4. Symbols and modules are used again, but never freed: at the end of a process, threads may
 *    still launch what main() has unregistered. The driver then refuses the old handle.
 */
#include "cudart/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/log.h"
#include "cudart/context.h"
#include "cudart/front.h"
#include "cudart/thread.h"

#define GONE ((const void *)1) /* the key of a slot whose symbol was removed */
#define FIRST_SLOTS 256
#define FAILURES 8 /* that a module remembers, each of another device */

struct slot {
    const void *_Atomic key; /* NULL: free */
    struct hed_rt_symbol *_Atomic value;
};

struct table {
    size_t mask;            /* slots - 1 */
    size_t used;            /* slots with a key, gone ones included; under the lock */
    struct table *replaced; /* that readers may still use */
    struct slot slots[];
};

struct hed_rt_module {
    const void *_Atomic wrapper; /* the program's; NULL once it was taken back */
    CUlibrary _Atomic library;
    _Atomic uint64_t failures[FAILURES]; /* see failure_of() */
    struct hed_rt_symbol *symbols;       /* under the lock */
    bool waits;                          /* is in `waiting`; under the lock */
    struct hed_rt_module *next;          /* of those that wait, or of those that are not in use */
};

static struct hed_lock registry_lock = HED_LOCK_INIT(HED_RANK_RUNTIME); /* changes of all below */
static struct table *_Atomic symbols;                                   /* by address of the host */
static struct table *_Atomic kernels; /* by CUkernel: which stub it is */
static struct hed_rt_symbol *spare_symbols;
static struct hed_rt_module *spare_modules;
static struct hed_rt_module *_Atomic waiting; /* whose managed variables have no addresses yet */

static size_t
hash_address(const void *p)
{
    const uint64_t x = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u;

    return (size_t)(x >> 32 ^ x >> 12);
}

static struct hed_rt_symbol *
table_find(struct table *_Atomic *where, const void *key)
{
    /* Acquire: pairs with the release in table_reserve(). */
    struct table *t = atomic_load_explicit(where, memory_order_acquire);

    if (!t || !key || key == GONE)
        return NULL;
    for (size_t i = hash_address(key);; i++) {
        struct slot *s = &t->slots[i & t->mask];
        /* Acquire: pairs with the release in table_put_locked(), so that the value is seen. */
        const void *k = atomic_load_explicit(&s->key, memory_order_acquire);

        if (k == key)
            return atomic_load_explicit(&s->value, memory_order_relaxed);
        if (!k)
            return NULL;
    }
}

/* The slot of a key, or else the one that it would take: that of a symbol that is gone, or free. */
static struct slot *
table_slot(struct table *t, const void *key)
{
    struct slot *gone = NULL;

    for (size_t i = hash_address(key);; i++) {
        struct slot *s = &t->slots[i & t->mask];
        const void *k = atomic_load_explicit(&s->key, memory_order_relaxed);

        if (k == key)
            return s;
        if (k == GONE && !gone)
            gone = s;
        if (!k)
            return gone ? gone : s;
    }
}

static void
table_put_locked(struct table *t, const void *key, struct hed_rt_symbol *value)
{
    struct slot *s = table_slot(t, key);

    if (!atomic_load_explicit(&s->key, memory_order_relaxed))
        t->used++;
    atomic_store_explicit(&s->value, value, memory_order_relaxed);
    atomic_store_explicit(&s->key, key, memory_order_release); /* pairs with table_find() */
}

/* Makes sure that there is room for one more. */
static bool
table_reserve_locked(struct table *_Atomic *where)
{
    struct table *old = atomic_load_explicit(where, memory_order_relaxed);
    const size_t slots = old ? old->mask + 1 : 0;
    const size_t size = slots ? slots * 2 : FIRST_SLOTS;
    struct table *t;

    if (old && (old->used + 1) * 4 <= slots * 3)
        return true;
    t = calloc(1, sizeof *t + size * sizeof t->slots[0]);
    if (!t)
        return false;
    t->mask = size - 1;
    t->replaced = old;
    for (size_t i = 0; i < slots; i++) {
        const void *k = atomic_load_explicit(&old->slots[i].key, memory_order_relaxed);

        if (k && k != GONE)
            table_put_locked(t, k,
                             atomic_load_explicit(&old->slots[i].value, memory_order_relaxed));
    }
    atomic_store_explicit(where, t, memory_order_release); /* pairs with table_find() */
    return true;
}

static void
table_drop_locked(struct table *_Atomic *where, const void *key)
{
    struct table *t = atomic_load_explicit(where, memory_order_relaxed);
    struct slot *s = t ? table_slot(t, key) : NULL;
    size_t i;

    if (!s || atomic_load_explicit(&s->key, memory_order_relaxed) != key)
        return;
    atomic_store_explicit(&s->key, GONE, memory_order_release);
    /* No search goes on beyond a free slot, so those before it that are gone lead nowhere. */
    i = (size_t)(s - t->slots);
    if (atomic_load_explicit(&t->slots[(i + 1) & t->mask].key, memory_order_relaxed))
        return;
    for (; atomic_load_explicit(&t->slots[i & t->mask].key, memory_order_relaxed) == GONE; i--) {
        atomic_store_explicit(&t->slots[i & t->mask].key, NULL, memory_order_relaxed);
        t->used--;
    }
}

/* ---- finding --------------------------------------------------------------------------------- */

struct hed_rt_symbol *
hed_rt_find(const void *host)
{
    return table_find(&symbols, host);
}

/* Does the error say that a device has no use for the code? Then another try would end in the same
 * way. Others pass, as the lack of memory may. */
static bool
is_about_code(cudaError_t r)
{
    switch ((int)r) {
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorInvalidSource:
    case cudaErrorNotSupported:
        return true;
    default:
        return false;
    }
}

/* What a module remembers about a failure: until a reset, the code is not loaded again for this
 * device. A program may try it a thousand times, and the driver logs each time. */
static uint64_t
failure_of(int device, cudaError_t r)
{
    const uint64_t age = atomic_load_explicit(&hed_rt_age, memory_order_relaxed);

    return age << 32 | (uint64_t)(uint16_t)device << 16 | (uint16_t)r;
}

/* Remembers the result `r` of a call about the code of a module, which it passes on. `wrapper` is
 * the code. */
static cudaError_t
remember_failure(struct hed_rt_module *m, const void *wrapper, cudaError_t r)
{
    int device;

    if (__builtin_expect(r != cudaSuccess, 0) && is_about_code(r) &&
        atomic_load_explicit(&m->wrapper, memory_order_relaxed) == wrapper &&
        hed_rt_device(&device) == cudaSuccess)
        atomic_store_explicit(&m->failures[device % FAILURES], failure_of(device, r),
                              memory_order_relaxed);
    return r;
}

static cudaError_t
remembered_failure(const struct hed_rt_module *m)
{
    uint64_t failure = 0;
    cudaError_t r;
    int device;

    for (int i = 0; i < FAILURES && !failure; i++)
        failure = atomic_load_explicit(&m->failures[i], memory_order_relaxed);
    if (__builtin_expect(!failure, 1) || hed_rt_device(&device) != cudaSuccess)
        return cudaSuccess;
    failure = atomic_load_explicit(&m->failures[device % FAILURES], memory_order_relaxed);
    r = (cudaError_t)(failure & UINT16_MAX);
    return failure == failure_of(device, r) ? r : cudaSuccess;
}

cudaError_t
hed_rt_library(const struct hed_rt_driver *cu, struct hed_rt_module *m, CUlibrary *out)
{
    /* The image stays where it is until the program takes it back: the driver need not copy it. */
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)1;
    CUlibrary none = NULL;
    CUlibrary loaded = atomic_load_explicit(&m->library, memory_order_acquire);
    cudaError_t r = remembered_failure(m);

    if (r != cudaSuccess)
        return r;
    if (!loaded) {
        const void *wrapper = atomic_load_explicit(&m->wrapper, memory_order_relaxed);

        if (!wrapper)
            return cudaErrorInvalidDeviceFunction;
        r = (cudaError_t)cu->cuLibraryLoadData(&loaded, wrapper, NULL, NULL, 0, &option, &value, 1);
        if (r != cudaSuccess)
            return remember_failure(m, wrapper, r);
        /* No lock is held while the driver works, so two threads may load it. One wins. */
        if (!atomic_compare_exchange_strong_explicit(&m->library, &none, loaded,
                                                     memory_order_acq_rel, memory_order_acquire)) {
            (void)cu->cuLibraryUnload(loaded);
            loaded = none;
        }
    }
    *out = loaded;
    return cudaSuccess;
}

static cudaError_t
load_kernel(const struct hed_rt_driver *cu, struct hed_rt_symbol *s, CUkernel *out)
{
    const void *wrapper = atomic_load_explicit(&s->module->wrapper, memory_order_relaxed);
    CUlibrary library;
    cudaError_t r = hed_rt_library(cu, s->module, &library);

    if (r != cudaSuccess)
        return r;
    r = (cudaError_t)cu->cuLibraryGetKernel(out, library, s->name);
    if (r == cudaErrorSymbolNotFound && hed_rt_version < 11000)
        return cudaErrorInvalidDeviceFunction;
    if (r != cudaSuccess)
        return remember_failure(s->module, wrapper, r);
    atomic_store_explicit(&s->kernel, *out, memory_order_relaxed);
    hed_lock(&registry_lock);
    if (table_reserve_locked(&kernels))
        table_put_locked(atomic_load_explicit(&kernels, memory_order_relaxed), *out, s);
    hed_unlock(&registry_lock);
    return cudaSuccess;
}

cudaError_t
hed_rt_kernel(const struct hed_rt_driver *cu, const void *func, CUkernel *out)
{
    struct hed_rt_symbol *s = hed_rt_find(func);

    if (!s || s->kind != HED_RT_KERNEL) {
        /* Since CUDA 12 it may be a handle of the driver's, which knows. */
        if (!func || hed_rt_version < 12000)
            return cudaErrorInvalidDeviceFunction;
        *out = (CUkernel)func;
        return cudaSuccess;
    }
    *out = atomic_load_explicit(&s->kernel, memory_order_relaxed);
    return *out ? cudaSuccess : load_kernel(cu, s, out);
}

cudaError_t
hed_rt_variable(const struct hed_rt_driver *cu, const void *symbol, CUdeviceptr *at, size_t *size)
{
    struct hed_rt_symbol *s = hed_rt_find(symbol);
    const void *wrapper;
    CUlibrary library;
    cudaError_t r;

    if (!s || (s->kind != HED_RT_VARIABLE && s->kind != HED_RT_MANAGED))
        return cudaErrorInvalidSymbol;
    if (s->kind == HED_RT_MANAGED) {
        *at = (CUdeviceptr)(uintptr_t)s->host;
        *size = s->size;
        return cudaSuccess;
    }
    wrapper = atomic_load_explicit(&s->module->wrapper, memory_order_relaxed);
    r = hed_rt_library(cu, s->module, &library);
    if (r == cudaSuccess)
        r = remember_failure(s->module, wrapper,
                             (cudaError_t)cu->cuLibraryGetGlobal(at, size, library, s->name));
    /* A driver that computes nothing does not know. */
    if (r == cudaSuccess && *size == 0)
        *size = s->size;
    return r == cudaErrorSymbolNotFound && hed_rt_version < 13000 ? cudaErrorInvalidSymbol : r;
}

const void *
hed_rt_stub(CUkernel kernel)
{
    const struct hed_rt_symbol *s = table_find(&kernels, kernel);

    return s ? s->host : kernel;
}

/* ---- registering ----------------------------------------------------------------------------- */

struct hed_rt_module *
hed_rt_add_module(const void *wrapper)
{
    struct hed_rt_module *m;

    hed_lock(&registry_lock);
    m = spare_modules;
    if (m)
        spare_modules = m->next;
    hed_unlock(&registry_lock);
    if (!m)
        m = calloc(1, sizeof *m);
    if (m) {
        /* Whoever loaded the code of the module's last life too late must not leave it here. */
        atomic_store_explicit(&m->library, NULL, memory_order_relaxed);
        for (int i = 0; i < FAILURES; i++)
            atomic_store_explicit(&m->failures[i], 0, memory_order_relaxed);
        atomic_store_explicit(&m->wrapper, wrapper, memory_order_relaxed);
    }
    return m;
}

static void
module_waits_locked(struct hed_rt_module *m)
{
    if (m->waits)
        return;
    m->waits = true;
    m->next = atomic_load_explicit(&waiting, memory_order_relaxed);
    atomic_store_explicit(&waiting, m, memory_order_relaxed);
}

static void
module_waits_no_more_locked(struct hed_rt_module *m)
{
    struct hed_rt_module *before = atomic_load_explicit(&waiting, memory_order_relaxed);

    if (!m->waits)
        return;
    m->waits = false;
    if (before == m) {
        /* Release: pairs with hed_rt_init_modules(), so that the addresses are seen. */
        atomic_store_explicit(&waiting, m->next, memory_order_release);
        return;
    }
    while (before->next != m)
        before = before->next;
    before->next = m->next;
}

static struct hed_rt_symbol *
take_symbol_locked(void)
{
    struct hed_rt_symbol *s = spare_symbols;

    if (s)
        spare_symbols = s->next;
    return s ? s : malloc(sizeof *s);
}

void
hed_rt_add_symbol(struct hed_rt_module *m, enum hed_rt_kind kind, const void *host,
                  const char *name, size_t size)
{
    struct hed_rt_symbol *s;

    if (!m || !host || host == GONE)
        return;
    hed_lock(&registry_lock);
    if (table_reserve_locked(&symbols) && (s = take_symbol_locked()) != NULL) {
        *s = (struct hed_rt_symbol){.host = host,
                                    .kind = kind,
                                    .module = m,
                                    .name = name,
                                    .size = size,
                                    .next = m->symbols,
                                    .older = table_find(&symbols, host)};
        table_put_locked(atomic_load_explicit(&symbols, memory_order_relaxed), host, s);
        m->symbols = s;
        if (kind == HED_RT_MANAGED_POINTER)
            module_waits_locked(m);
    }
    hed_unlock(&registry_lock);
}

/* Takes a symbol out of the chain of its address. */
static void
remove_symbol_locked(struct hed_rt_symbol *s)
{
    struct hed_rt_symbol *newest = table_find(&symbols, s->host);

    if (newest == s && !s->older)
        table_drop_locked(&symbols, s->host);
    else if (newest == s)
        table_put_locked(atomic_load_explicit(&symbols, memory_order_relaxed), s->host, s->older);
    else
        for (; newest; newest = newest->older)
            if (newest->older == s) {
                newest->older = s->older;
                break;
            }
    if (atomic_load_explicit(&s->kernel, memory_order_relaxed))
        table_drop_locked(&kernels, atomic_load_explicit(&s->kernel, memory_order_relaxed));
}

/* Tells the program where a managed variable is, unless the library with the variable is being
 * unloaded: then there is no such pointer any more. If several threads do this at once, the program
 * may read the pointer already: it is written once. */
static cudaError_t
place_managed(const struct hed_rt_driver *cu, CUlibrary library, struct hed_rt_symbol *pointer)
{
    struct hed_rt_module *m = pointer->module;
    void **where = (void **)(uintptr_t)pointer->host;
    const void *wrapper = atomic_load_explicit(&m->wrapper, memory_order_relaxed);
    CUdeviceptr at;
    size_t size;
    const CUresult r = cu->cuLibraryGetManaged(&at, &size, library, pointer->name);
    bool is_there;

    if (r != CUDA_SUCCESS)
        return remember_failure(m, wrapper, (cudaError_t)r);
    hed_lock(&registry_lock);
    is_there = atomic_load_explicit(&m->library, memory_order_relaxed) == library;
    if (is_there && *where != (void *)(uintptr_t)at)
        *where = (void *)(uintptr_t)at;
    hed_unlock(&registry_lock);
    if (is_there && !hed_rt_find((void *)(uintptr_t)at))
        hed_rt_add_symbol(m, HED_RT_MANAGED, (void *)(uintptr_t)at, pointer->name, size);
    return cudaSuccess;
}

static struct hed_rt_symbol *
newest_symbol(struct hed_rt_module *m)
{
    struct hed_rt_symbol *s;

    hed_lock(&registry_lock);
    s = m->symbols;
    hed_unlock(&registry_lock);
    return s;
}

bool
hed_rt_init_module(struct hed_rt_module *m)
{
    const struct hed_rt_driver *cu = &hed_rt_legacy;
    const void *wrapper = atomic_load_explicit(&m->wrapper, memory_order_relaxed);
    const bool places = hed_rt_thread.places;
    CUlibrary library;
    cudaError_t r;
    int tries = 0;

    hed_rt_thread.places = true;
    do {
        r = hed_rt_library(cu, m, &library);
        for (struct hed_rt_symbol *s = newest_symbol(m); s && r == cudaSuccess; s = s->next)
            if (s->kind == HED_RT_MANAGED_POINTER)
                r = place_managed(cu, library, s);
    } while (r != cudaSuccess && ++tries < HED_RT_TRIES && hed_rt_enter(&r));
    hed_rt_thread.places = places;
    /* Only now: another thread that finds nobody waiting uses the variables. */
    hed_lock(&registry_lock);
    if (atomic_load_explicit(&m->wrapper, memory_order_relaxed) == wrapper)
        module_waits_no_more_locked(m);
    hed_unlock(&registry_lock);
    return r == cudaSuccess;
}

void
hed_rt_init_modules(void)
{
    struct hed_rt_module *m;

    if (hed_rt_thread.places)
        return;
    /* Acquire: pairs with the release in module_waits_no_more_locked(). */
    while ((m = atomic_load_explicit(&waiting, memory_order_acquire)) != NULL)
        (void)hed_rt_init_module(m);
}

void
hed_rt_remove_module(struct hed_rt_module *m)
{
    CUlibrary library;

    /* A module that is taken back twice must not be used twice. */
    if (!atomic_exchange_explicit(&m->wrapper, NULL, memory_order_relaxed))
        return;
    library = atomic_exchange_explicit(&m->library, NULL, memory_order_acq_rel);
    hed_lock(&registry_lock);
    module_waits_no_more_locked(m);
    while (m->symbols) {
        struct hed_rt_symbol *s = m->symbols;

        remove_symbol_locked(s);
        m->symbols = s->next;
        s->next = spare_symbols;
        spare_symbols = s;
    }
    m->next = spare_modules;
    spare_modules = m;
    hed_unlock(&registry_lock);
    /* At the end of the process the driver may be gone already, and then says so. */
    if (library)
        (void)hed_rt_legacy.cuLibraryUnload(library);
}
