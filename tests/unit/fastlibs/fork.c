/* Tests of the child of a fork: it waits for none of the parent's threads. The threads are stopped
 * in the middle of something by memory that may not be touched, with a lock held.
 */
#include "harness/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fastlibs/answer.h"
#include "fastlibs/cudnn.h"
#include "fastlibs/descriptors.h"
#include "fastlibs/scratch.h"

#define PIECE ((size_t)16 << 20) /* so large that it has pages of its own */
#define TAKEN_MOST 16            /* as in scratch.c */

static sem_t is_stopped, goes_on;

static void
stop_thread(int signal)
{
    (void)signal;
    sem_post(&is_stopped);
    while (sem_wait(&goes_on) != 0)
        ;
}

/* Returns a child that ends itself if it hangs. */
static pid_t
start_child(void (*child)(void))
{
    pid_t pid;

    hed_answer_leave(HED_LEFT_KIND); /* or the linker leaves out what notices a fork */
    pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S / 8);
        child();
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

static void
await_child(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Forks while a thread is in a function that touches `memory`. */
static void
fork_while(void *(*fn)(void *), char *memory, void (*child)(void))
{
    const struct sigaction action = {.sa_handler = stop_thread};
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = memory - (uintptr_t)memory % size;
    struct sigaction before;
    pthread_t thread;
    pid_t pid;

    sem_init(&is_stopped, 0, 0);
    sem_init(&goes_on, 0, 0);
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    assert_int_equal(mprotect(page, size, PROT_NONE), 0);
    assert_int_equal(pthread_create(&thread, NULL, fn, memory), 0);
    assert_int_equal(sem_wait(&is_stopped), 0);
    pid = start_child(child);
    assert_int_equal(mprotect(page, size, PROT_READ | PROT_WRITE), 0);
    sem_post(&goes_on);
    pthread_join(thread, NULL);
    sigaction(SIGSEGV, &before, NULL);
    await_child(pid);
}

/* What is known of a piece stands in front of it. */
static void *
put_piece(void *before)
{
    hed_scratch_put((char *)before + 1);
    return NULL;
}

static void
use_scratch(void)
{
    if (!hed_scratch_reserve(PIECE))
        _exit(1);
    hed_scratch_put(hed_scratch_take(PIECE));
}

static void
a_job_puts_memory_back(void **state)
{
    char *piece;

    (void)state;
    assert_true(hed_scratch_reserve(PIECE));
    piece = hed_scratch_take(PIECE);
    fork_while(put_piece, piece - 1, use_scratch);
}

static void
jobs_have_all_memory(void **state)
{
    void *taken[TAKEN_MOST];

    (void)state;
    assert_true(hed_scratch_reserve(64));
    for (unsigned i = 0; i < TAKEN_MOST; i++)
        taken[i] = hed_scratch_take(64);
    await_child(start_child(use_scratch));
    for (unsigned i = 0; i < TAKEN_MOST; i++)
        hed_scratch_put(taken[i]);
}

static int descriptor;

static void *
set_descriptor(void *elements)
{
    hed_descriptors_set(&descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, elements);
    return NULL;
}

static void
use_descriptors(void)
{
    int64_t one = 1;

    (void)set_descriptor(&one);
    hed_descriptors_forget(&descriptor);
}

static void
a_descriptor_is_set(void **state)
{
    char *elements = aligned_alloc(65536, 65536);

    (void)state;
    assert_non_null(elements);
    fork_while(set_descriptor, elements, use_descriptors);
    hed_descriptors_forget(&descriptor);
    free(elements);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_puts_memory_back),
    cmocka_unit_test(jobs_have_all_memory),
    cmocka_unit_test(a_descriptor_is_set),
};

HED_UNIT_MAIN(tests)
