/* The fake driver's CUPTI; see fake.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_inner.h"

#define CLOCK_OFF UINT64_C(1000000000000000)

hed_cupti_callback fake_callback;
bool fake_enabled[FAKE_CALLS];
bool fake_kinds[64];

#define NAME(name) [ID_##name] = #name,
const char *const fake_names[FAKE_CALLS] = {FAKE_SEEN(NAME)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hed_cupti_requested requested;
static hed_cupti_completed completed;
static uint64_t (*tool_clock)(void);

#define CUPTI(name, arguments) FAKE_PUBLIC int name arguments;
HED_CUPTI_NEEDED(CUPTI)
HED_CUPTI_WANTED(CUPTI)

bool
fake_is(const char *what)
{
    const char *how = getenv("FAKE_CUPTI");

    return how && strcmp(how, what) == 0;
}

int
cuptiSubscribe(void **subscriber, hed_cupti_callback f, void *user)
{
    if (fake_is("refuse"))
        return HED_CUPTI_OTHER_PROFILER;
    fake_callback = f;
    *subscriber = &fake_callback;
    return 0;
}

int
cuptiUnsubscribe(void *subscriber)
{
    fake_callback = NULL;
    return 0;
}

int
cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t id)
{
    if (subscriber != &fake_callback || domain != 1 || id == 0 || id >= FAKE_CALLS)
        return 1;
    fake_enabled[id] = on;
    return 0;
}

int
cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    if (id >= FAKE_CALLS)
        return 1;
    *name = id ? fake_names[id] : "INVALID";
    return 0;
}

int
cuptiGetResultString(int result, const char **text)
{
    *text = "CUPTI_ERROR_FAKE";
    return 0;
}

int
cuptiGetVersion(uint32_t *version)
{
    *version = 130001;
    return 0;
}

uint64_t
fake_now(void)
{
    struct timespec t;

    if (tool_clock)
        return tool_clock();
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return CLOCK_OFF + (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int
cuptiGetTimestamp(uint64_t *out)
{
    *out = fake_now();
    return 0;
}

int
cuptiActivityRegisterTimestampCallback(uint64_t (*f)(void))
{
    if (fake_is("clock"))
        return HED_CUPTI_NOT_SUPPORTED;
    tool_clock = f;
    return 0;
}

int
cuptiActivityRegisterCallbacks(hed_cupti_requested r, hed_cupti_completed c)
{
    requested = r;
    completed = c;
    return 0;
}

int
cuptiActivityEnable(int kind)
{
    fake_kinds[kind] = true;
    return 0;
}

int
cuptiActivityFlushPeriod(uint32_t ms)
{
    return 0;
}

int
cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    *dropped = 0;
    return 0;
}

static size_t
record_size(const void *record)
{
    return *(const uint32_t *)record == HED_CUPTI_KERNEL ? FAKE_KERNEL_SIZE : FAKE_COPY_SIZE;
}

int
cuptiActivityGetNextRecord(uint8_t *buffer, size_t used, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + record_size(*record) : buffer;

    if (next >= buffer + used)
        return HED_CUPTI_FULL;
    *record = next;
    return 0;
}

/* Activity that has happened and was not delivered yet. */
static uint8_t pending[FAKE_LAUNCHES * FAKE_KERNEL_SIZE];
static size_t pending_size;

void
fake_happened(const void *record, size_t size, size_t whole)
{
    pthread_mutex_lock(&lock);
    if (pending_size + whole <= sizeof pending) {
        memcpy(pending + pending_size, record, size);
        pending_size += whole;
    }
    pthread_mutex_unlock(&lock);
}

int
cuptiActivityFlushAll(uint32_t flags)
{
    uint8_t *buffer = NULL;
    size_t size = 0;
    size_t most = 1;

    requested(&buffer, &size, &most);
    pthread_mutex_lock(&lock);

    const size_t used = pending_size <= size ? pending_size : 0;

    memcpy(buffer, pending, used);
    pending_size = 0;
    pthread_mutex_unlock(&lock);
    completed(NULL, 0, buffer, size, used);
    return 0;
}
