/* The stack of contexts that every thread has.
 *
 * A thread belongs to one driver at a time. If its stack belongs to another driver (the parent's
 * after a fork, or an earlier test's), the stack is emptied at the next use.
 */
#include <pthread.h>
#include <stdlib.h>

#include "driver/context/context.h"
#include "driver/stream/work.h"

#define BORROWED 8          /* contexts that one call may look up */
#define DEPTH_MAX (1 << 20) /* contexts on one stack; a limit for programs that push for ever */

struct stack {
    uint64_t driver;         /* serial of the driver that the contexts belong to */
    struct hed_context **at; /* references; the top is last */
    uint32_t count, room;
    struct hed_context *borrowed[BORROWED]; /* references; the oldest is overwritten next */
    uint32_t next_borrowed;
    bool known; /* a destructor will run when the thread ends */
};

static _Thread_local struct stack stack;

static pthread_key_t key;
static bool have_key;

static void
empty_stack(struct stack *s)
{
    while (s->count > 0)
        hed_context_unref(s->at[--s->count]);
    for (uint32_t i = 0; i < BORROWED; i++) {
        hed_context_unref(s->borrowed[i]);
        s->borrowed[i] = NULL;
    }
}

static void
stack_of_thread_ends(void *p)
{
    struct stack *s = p;

    empty_stack(s);
    free(s->at);
    *s = (struct stack){0};
}

static void
make_stack_key(void)
{
    have_key = pthread_key_create(&key, stack_of_thread_ends) == 0;
}

/* The calling thread's stack for a driver. */
static struct stack *
own_stack(const struct hed_driver *d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stack *s = &stack;

    if (__builtin_expect(s->driver == d->serial, 1))
        return s;
    (void)pthread_once(&once, make_stack_key);
    empty_stack(s);
    s->driver = d->serial;
    if (!s->known && have_key)
        s->known = pthread_setspecific(key, s) == 0;
    return s;
}

struct hed_context *
hed_thread_context(struct hed_driver *d)
{
    const struct stack *s = own_stack(d);

    return s->count ? s->at[s->count - 1] : NULL;
}

bool
hed_thread_push(struct hed_driver *d, struct hed_context *c)
{
    struct stack *s = own_stack(d);

    if (s->count == s->room) {
        const uint32_t room = s->room ? s->room * 2 : 8;
        struct hed_context **at =
            room > DEPTH_MAX ? NULL : realloc(s->at, room * sizeof(struct hed_context *));

        if (!at)
            return false;
        s->at = at;
        s->room = room;
    }
    hed_context_ref(c);
    s->at[s->count++] = c;
    return true;
}

bool
hed_thread_set(struct hed_driver *d, struct hed_context *c)
{
    struct stack *s = own_stack(d);

    if (s->count == 0)
        return hed_thread_push(d, c);

    struct hed_context **top = &s->at[s->count - 1];

    hed_context_ref(c);
    hed_context_unref(*top);
    *top = c;
    return true;
}

void
hed_thread_pop(struct hed_driver *d)
{
    struct stack *s = own_stack(d);

    /* The caller may still use the context that it pops. */
    if (s->count > 0)
        (void)hed_thread_borrow(d, s->at[--s->count]);
}

struct hed_context *
hed_thread_borrow(struct hed_driver *d, struct hed_context *c)
{
    struct stack *s = own_stack(d);
    struct hed_context **slot = &s->borrowed[s->next_borrowed++ % BORROWED];

    hed_context_unref(*slot);
    *slot = c;
    return c;
}

CUresult
hed_driver_ready(const struct hed_driver *d)
{
    /* Relaxed: a program that uses the driver from several threads orders cuInit itself. */
    if (__builtin_expect(atomic_load_explicit(&d->ended, memory_order_relaxed), 0))
        return CUDA_ERROR_DEINITIALIZED;
    return atomic_load_explicit(&d->initialized, memory_order_relaxed) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult
hed_current_even_failed(struct hed_layer *self, struct hed_context **out)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_driver_ready(d);

    if (r != CUDA_SUCCESS)
        return r;
    /* "Callbacks must not make any CUDA API calls. Attempting to use a CUDA API will result in
     * CUDA_ERROR_NOT_PERMITTED." (CUDA Driver API, cuStreamAddCallback) */
    if (hed_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;

    struct hed_context *c = hed_thread_context(d);

    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!hed_context_alive(c))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = c;
    return CUDA_SUCCESS;
}

CUresult
hed_current(struct hed_layer *self, struct hed_context **out)
{
    struct hed_context *c;
    CUresult r = hed_current_even_failed(self, &c);

    if (r == CUDA_SUCCESS)
        r = hed_context_error(c);
    if (r == CUDA_SUCCESS)
        *out = c;
    return r;
}

CUresult
hed_current_if_any(struct hed_layer *self, struct hed_context **out)
{
    const CUresult r = hed_current(self, out);

    if (r != CUDA_ERROR_INVALID_CONTEXT)
        return r;
    *out = NULL;
    return CUDA_SUCCESS;
}
