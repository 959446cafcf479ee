/* The program's side of core/nvtx_abi.h. */
#include "core/nvtx.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/nvtx_abi.h"

#define WAIT_MS 2000          /* for the library to start */
#define OURS "libheddle.so.0" /* heddle run --trace names it */

_Atomic int hed_nvtx_state = HED_NVTX_FRESH;

static const unsigned counts[HED_NVTX_MODULES] = {
    [HED_NVTX_CORE] = HED_NVTX_CORE_COUNT,     [HED_NVTX_CUDA] = HED_NVTX_CUDA_COUNT,
    [HED_NVTX_OPENCL] = HED_NVTX_OPENCL_COUNT, [HED_NVTX_CUDART] = HED_NVTX_CUDART_COUNT,
    [HED_NVTX_CORE2] = HED_NVTX_CORE2_COUNT,   [HED_NVTX_SYNC] = HED_NVTX_SYNC_COUNT,
};

/* Where the library writes its functions, and the lists of those addresses, with 0 at both ends.
 * All functions of NVTX are offered, because a library may give up otherwise; most are never
 * called. */
static hed_nvtx_function slots[HED_NVTX_MODULES][HED_NVTX_MOST];
static hed_nvtx_function *lists[HED_NVTX_MODULES][HED_NVTX_MOST + 1];

/* The functions that we call. Constant once the state is ON. */
static hed_nvtx_push_ex domain_push; /* NULL: the plain ones */
static hed_nvtx_pop_domain domain_pop;
static hed_nvtx_push_a plain_push;
static hed_nvtx_pop_plain plain_pop;
static void *domain;

/* Ranges that this thread has begun and not ended. */
static _Thread_local unsigned depth;
static _Thread_local bool loads; /* this thread is loading the library */

static int
get_functions(uint32_t module, hed_nvtx_function ***functions, unsigned *count)
{
    if (module >= HED_NVTX_MODULES || counts[module] == 0)
        return 0;
    if (count)
        *count = counts[module];
    if (functions)
        *functions = lists[module];
    return 1;
}

static void
set_library_version(uint32_t version)
{
    hed_debug(CORE, "the NVTX library is of version %u", (unsigned)version);
}

static const void *
get_table(uint32_t id)
{
    static const struct hed_nvtx_callbacks callbacks = {
        .size = sizeof callbacks,
        .get_functions = get_functions,
    };
    static const struct hed_nvtx_version version = {
        .size = sizeof version,
        .version = HED_NVTX_VERSION,
        .set_library_version = set_library_version,
    };

    switch (id) {
    case HED_NVTX_TABLE_CALLBACKS:
        return &callbacks;
    case HED_NVTX_TABLE_VERSION:
        return &version;
    default:
        return NULL;
    }
}

/* Takes the functions that the library has filled in. False: none of them makes ranges. */
static bool
choose_functions(void)
{
    const hed_nvtx_function *plain = slots[HED_NVTX_CORE];
    const hed_nvtx_function *domains = slots[HED_NVTX_CORE2];
    const hed_nvtx_create_a create = (hed_nvtx_create_a)domains[HED_NVTX_DOMAIN_CREATE_A];

    domain_push = (hed_nvtx_push_ex)domains[HED_NVTX_DOMAIN_RANGE_PUSH_EX];
    domain_pop = (hed_nvtx_pop_domain)domains[HED_NVTX_DOMAIN_RANGE_POP];
    if (create && domain_push && domain_pop) {
        domain = create("heddle");
        return true;
    }
    domain_push = NULL;
    domain_pop = NULL;
    plain_push = (hed_nvtx_push_a)plain[HED_NVTX_RANGE_PUSH_A];
    plain_pop = (hed_nvtx_pop_plain)plain[HED_NVTX_RANGE_POP];
    return plain_push && plain_pop;
}

/* Even if it is refused the library stays loaded, because it may have left something behind. */
static bool
load_tool(const char *path)
{
    int (*init)(const void *(*)(uint32_t));
    void *library;

    /* heddle takes the program's ranges (nvtx_take.c). Its own do not belong to the program. */
    if (strcmp(hed_str_base_name(path), OURS) == 0)
        return false;
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();

        hed_warn(CORE, "no NVTX ranges: %s", text ? text : path);
        return false;
    }
    /* ISO C has no conversion between objects and functions; POSIX has. */
    *(void **)&init = dlsym(library, HED_NVTX_INIT);
    if (!init) {
        hed_warn(CORE, "no NVTX ranges: %s has no %s", path, HED_NVTX_INIT);
        return false;
    }
    for (unsigned m = 0; m < HED_NVTX_MODULES; m++)
        for (unsigned i = 1; i < counts[m]; i++)
            lists[m][i] = &slots[m][i];
    if (!init(get_table)) {
        hed_warn(CORE, "no NVTX ranges: %s refuses to start", path);
        return false;
    }
    if (!choose_functions()) {
        hed_warn(CORE, "no NVTX ranges: %s accepts none", path);
        return false;
    }
    hed_info(CORE, "NVTX ranges go to %s", path);
    return true;
}

/* Acquire: pairs with the release in hed_nvtx_ask, so that the functions are seen. */
static int
look_for_tool(void)
{
    return atomic_load_explicit(&hed_nvtx_state, memory_order_acquire);
}

/* Another thread loads the library; in a child of that process, no thread does. */
static bool
wait_for_start(void)
{
    int starting = HED_NVTX_STARTING;

    for (int i = 0; i < WAIT_MS && look_for_tool() == HED_NVTX_STARTING; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = HED_NS_PER_MS}, NULL);
    (void)atomic_compare_exchange_strong_explicit(&hed_nvtx_state, &starting, HED_NVTX_OFF,
                                                  memory_order_relaxed, memory_order_relaxed);
    return look_for_tool() == HED_NVTX_ON;
}

bool
hed_nvtx_ask(void)
{
    int state = look_for_tool();

    if (state == HED_NVTX_ON || state == HED_NVTX_OFF || loads)
        return state == HED_NVTX_ON;
    /* Relaxed: a second thread does not touch what the first is about to write. */
    if (state == HED_NVTX_STARTING ||
        !atomic_compare_exchange_strong_explicit(&hed_nvtx_state, &state, HED_NVTX_STARTING,
                                                 memory_order_relaxed, memory_order_relaxed))
        return wait_for_start();

    /* Not for programs that have more rights than their user. */
    const char *path = secure_getenv(HED_NVTX_VARIABLE);

    loads = true;

    const bool on = path && *path && load_tool(path);

    loads = false;
    atomic_store_explicit(&hed_nvtx_state, on ? HED_NVTX_ON : HED_NVTX_OFF, memory_order_release);
    return on;
}

void
hed_nvtx_push(const char *text)
{
    if (!hed_nvtx_on())
        return;
    depth++;
    if (!domain_push) {
        (void)plain_push(text);
        return;
    }

    const struct hed_nvtx_event event = {
        .version = HED_NVTX_VERSION,
        .size = sizeof event,
        .message_type = HED_NVTX_ASCII,
        .message = text,
    };

    (void)domain_push(domain, &event);
}

void
hed_nvtx_pop(void)
{
    /* A thread that has pushed has seen ON. */
    if (depth == 0)
        return;
    depth--;
    if (domain_pop)
        (void)domain_pop(domain);
    else
        (void)plain_pop();
}
