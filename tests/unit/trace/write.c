/* Tests of trace/write: the records of all threads are in the file, as trace/read reads it. */
#include "harness/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/settle.h"
#include "see/trace/format.h"
#include "see/trace/read.h"
#include "see/trace/write.h"
#include "unit/trace/written.h"

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    struct hed_trace_writer *w;
    uint64_t who;
    uint32_t count;
    uint64_t kept;
    _Atomic bool stop;
    pthread_t thread;
};

static void *
put_calls(void *p)
{
    struct worker *me = p;

    for (uint32_t i = 0; i < me->count; i++)
        me->kept += put_call(me->w, me->who, i, i % 97);
    return NULL;
}

static uint64_t
run_workers(struct hed_trace_writer *w, uint32_t workers, uint32_t count)
{
    struct worker *all = calloc(workers, sizeof *all);
    uint64_t kept = 0;

    for (uint32_t i = 0; i < workers; i++) {
        all[i] = (struct worker){.w = w, .who = i, .count = count};
        assert_int_equal(pthread_create(&all[i].thread, NULL, put_calls, &all[i]), 0);
    }
    for (uint32_t i = 0; i < workers; i++) {
        pthread_join(all[i].thread, NULL);
        kept += all[i].kept;
    }
    free(all);
    return kept;
}

static void
block_mode_loses_nothing(void **state)
{
    struct hed_trace_writer *w = open_writer("block_mode_loses_nothing.hed", false, 65536);

    assert_true(run_workers(w, 8, 20000) == 8 * 20000);

    const struct found *f = finish_trace(w);

    assert_true(f->calls == 8 * 20000);
    assert_int_equal(f->gaps, 0);
    assert_int_equal(f->dropped_records, 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(f->next[i], 20000);
}

static void
drop_mode_counts_what_it_drops(void **state)
{
    struct hed_trace_writer *w = open_writer("drop_mode_counts_what_it_drops.hed", true, 65536);
    const uint64_t kept = run_workers(w, 8, 20000);
    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_count(w, &records, &dropped);
    assert_true(kept + dropped == 8 * 20000);

    const struct found *f = finish_trace(w);

    assert_true(f->calls == kept);
    /* Records about drops explain the gaps between records, but not a dropped end. */
    assert_true(f->dropped <= dropped);
    assert_true(f->gaps <= f->dropped_records);
}

static void
threads_that_end_leave_everything(void **state)
{
    struct hed_trace_writer *w = open_writer("threads_that_end_leave_everything.hed", false, 65536);

    for (int round = 0; round < 50; round++)
        assert_true(run_workers(w, 4, 3) == 12);

    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records == 50 * 12 && dropped == 0);
    hed_trace_writer_close(w);

    struct hed_trace *t = read_back(path);

    assert_true(hed_trace_state(t)->records == 50 * 12);
    hed_trace_close(t);
    hed_trace_writer_free(w);
}

/* ---- more threads than rings ----------------------------------------------------------------- */

struct crowd {
    struct hed_trace_writer *w;
    pthread_barrier_t all_have_put;
    _Atomic uint32_t next;
    _Atomic uint32_t kept;
};

static void *
stand_in_crowd(void *p)
{
    struct crowd *c = p;
    const uint32_t who = atomic_fetch_add(&c->next, 1);

    for (uint32_t i = 0; i < 2; i++)
        atomic_fetch_add(&c->kept, put_call(c->w, who, i, 0));
    pthread_barrier_wait(&c->all_have_put);
    return NULL;
}

static void
threads_without_a_ring_are_counted(void **state)
{
    enum { EXTRA = 4, COUNT = HED_TRACE_RINGS_MAX + EXTRA };
    struct crowd c = {.w = open_writer("threads_without_a_ring_are_counted.hed", false, 65536)};
    pthread_t *threads = calloc(COUNT, sizeof *threads);
    pthread_attr_t attr;
    int made = 0;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    pthread_barrier_init(&c.all_have_put, NULL, COUNT + 1);
    for (int err = 0; made < COUNT && !err; made += !err)
        err = pthread_create(&threads[made], &attr, stand_in_crowd, &c);
    if (made < COUNT) {
        print_message("only %d threads can be made here\n", made);
        fflush(NULL);
        _exit(77); /* the threads that were made wait for ever */
    }
    pthread_barrier_wait(&c.all_have_put);
    for (int i = 0; i < COUNT; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c.all_have_put);

    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_count(c.w, &records, &dropped);
    assert_int_equal(c.kept, 2 * HED_TRACE_RINGS_MAX);
    assert_true(records == 2 * HED_TRACE_RINGS_MAX && dropped == 2 * EXTRA);
    assert_int_equal(finish_trace(c.w)->calls, 2 * HED_TRACE_RINGS_MAX);
    free(threads);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
late_records_are_written_at_once(void **state)
{
    struct hed_trace_writer *w = open_writer("late_records_are_written_at_once.hed", false, 65536);

    assert_true(put_call(w, 0, 0, 1));
    hed_trace_writer_close(w);
    hed_trace_writer_close(w);
    for (uint32_t i = 1; i < 100; i++) {
        assert_true(put_call(w, 0, i, 1));

        struct hed_trace *t = read_back(path);

        assert_true(hed_trace_state(t)->records == i + 1);
        assert_true(hed_trace_state(t)->ended && hed_trace_state(t)->end_records == i + 1);
        hed_trace_close(t);
    }
    assert_true(run_workers(w, 4, 100) == 400); /* also by new threads */
    assert_int_equal(hed_trace_writer_path(w)[0], '/');
    hed_trace_writer_free(w);
}

static void
a_writer_begins_one_file_after_the_other(void **state)
{
    struct hed_trace_options o = {
        .path = "", .ring_size = 65536, .data_bytes = 64, .chain = "test", .schemas = schemas};
    struct hed_why why = {""};
    struct hed_trace_writer *w = NULL;

    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0);
    (void)put_call(w, 0, 0, 1); /* of no file */
    for (uint32_t n = 1; n <= 3; n++) {
        snprintf(path, sizeof path, "%s/one_after_the_other.%u.hed", getenv("HED_SCRATCH"), n);
        o.path = path;
        assert_int_equal(hed_trace_writer_start(w, &o, &why), 0);
        assert_string_equal(hed_trace_writer_path(w), path);
        assert_true(run_workers(w, 2, n) == 2 * (uint64_t)n);
        assert_true(put_call(w, 7, 0, 1));
        assert_int_equal(hed_trace_writer_stop(w), 0);
        (void)put_call(w, 7, 1, 1); /* after the end */

        struct hed_trace *t = read_back(path);
        const struct hed_trace_state *s = hed_trace_state(t);

        assert_true(s->records == 2 * (uint64_t)n + 1);
        assert_true(s->ended && s->end_records == s->records && s->end_dropped == 0);
        hed_trace_close(t);
    }

    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records == 2 * (1 + 2 + 3) + 3 && dropped == 4);
    hed_trace_writer_free(w);
}

static void
only_an_older_trace_is_replaced(void **state)
{
    struct hed_trace_options o = {.path = path, .ring_size = 65536, .schemas = schemas};
    struct hed_why why = {""};
    struct hed_trace_writer *w = NULL;
    int fd;

    snprintf(path, sizeof path, "%s/only_an_older_trace.hed", getenv("HED_SCRATCH"));
    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0);
    assert_true(put_call(w, 0, 0, 1));
    assert_int_equal(hed_trace_writer_stop(w), 0);
    o.replace = true;
    assert_int_equal(hed_trace_writer_start(w, &o, &why), 0);
    assert_string_equal(hed_trace_writer_path(w), path);
    assert_int_equal(hed_trace_writer_stop(w), 0);
    fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && write(fd, "a letter", 8) == 8);
    close(fd);
    assert_int_equal(hed_trace_writer_start(w, &o, &why), HED_EEXIST);
    assert_non_null(strstr(why.text, "is not a trace, so it is not replaced"));
    hed_trace_writer_free(w);
}

static void
a_trace_that_is_being_written_stays(void **state)
{
    struct hed_trace_options o = {
        .path = path, .ring_size = 65536, .replace = true, .schemas = schemas};
    struct hed_trace_writer *first = NULL;
    struct hed_trace_writer *w = NULL;
    struct hed_why why = {""};

    snprintf(path, sizeof path, "%s/being_written.hed", getenv("HED_SCRATCH"));
    assert_int_equal(hed_trace_writer_open(&o, &first, &why), 0);
    assert_int_equal(hed_trace_writer_open(&o, &w, &why), HED_EEXIST);
    assert_non_null(strstr(why.text, "is being written"));
    o.owner = (uint64_t)getpid();
    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0);
    assert_non_null(strstr(hed_trace_writer_path(w), "/being_written."));
    assert_string_not_equal(hed_trace_writer_path(w), path);
    hed_trace_writer_free(w);
    hed_trace_writer_free(first);
    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0); /* now it is complete */
    assert_string_equal(hed_trace_writer_path(w), path);
    hed_trace_writer_free(w);
}

/* Puts records until it is told to stop. */
static void *
put_until_told(void *p)
{
    struct worker *me = p;

    while (!atomic_load(&me->stop))
        (void)put_call(me->w, me->who, me->count++, 8);
    return NULL;
}

static void
files_change_under_threads_that_record(void **state)
{
    enum { THREADS = 3, FILES = 40 };
    struct hed_trace_options o = {
        .path = "", .ring_size = 65536, .chain = "test", .replace = true, .schemas = schemas};
    struct worker all[THREADS];
    struct hed_why why = {""};
    struct hed_trace_writer *w = NULL;

    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        all[i] = (struct worker){.w = w, .who = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, put_until_told, &all[i]), 0);
    }
    snprintf(path, sizeof path, "%s/files_change.hed", getenv("HED_SCRATCH"));
    o.path = path;
    for (int n = 0; n < FILES; n++) {
        uint64_t before;
        uint64_t records = 0;
        uint64_t dropped;

        assert_int_equal(hed_trace_writer_start(w, &o, &why), 0);
        hed_trace_writer_count(w, &before, &dropped);
        while (records < before + 100)
            hed_trace_writer_count(w, &records, &dropped);
        assert_int_equal(hed_trace_writer_stop(w), 0);

        struct hed_trace *t = read_back(path);
        const struct hed_trace_state *s = hed_trace_state(t);

        assert_true(s->ended && s->records > 0);
        assert_true(s->records == s->end_records);
        hed_trace_close(t);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        atomic_store(&all[i].stop, true);
        pthread_join(all[i].thread, NULL);
    }
    hed_trace_writer_free(w);
}

static void *
keep_putting(void *p)
{
    struct worker *me = p;

    for (uint32_t i = 0; i < me->count; i++)
        me->kept += put_call(me->w, me->who, i, 60);
    return NULL;
}

static void
closing_under_load_loses_nothing(void **state)
{
    struct hed_trace_writer *w = open_writer("closing_under_load_loses_nothing.hed", false, 65536);
    struct worker all[4];
    uint64_t kept = 0;

    for (uint32_t i = 0; i < 4; i++) {
        all[i] = (struct worker){.w = w, .who = i, .count = 3000};
        assert_int_equal(pthread_create(&all[i].thread, NULL, keep_putting, &all[i]), 0);
    }
    hed_trace_writer_close(w);
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(all[i].thread, NULL);
        kept += all[i].kept;
    }
    assert_true(kept == 4 * 3000);

    const struct found *f = finish_trace(w);

    assert_true(f->calls == kept);
    assert_int_equal(f->gaps, 0);
}

static void
a_forked_child_leaves_the_file_alone(void **state)
{
    struct hed_trace_writer *w =
        open_writer("a_forked_child_leaves_the_file_alone.hed", false, 65536);
    int status;

    assert_true(put_call(w, 0, 0, 0));

    wait_for_writer_thread();

    const pid_t child = fork();

    if (child == 0) {
        hed_trace_writer_forked(w);

        /* The child has a writer of its own, with the same path. */
        struct hed_trace_writer *own =
            open_writer("a_forked_child_leaves_the_file_alone.hed", false, 65536);

        for (uint32_t i = 0; i < 100; i++)
            put_call(own, 1, i, 50);
        _exit(finish_trace(own)->calls == 100 && strcmp(path, hed_trace_writer_path(w)) == 0 ? 0
                                                                                             : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(put_call(w, 0, 1, 0));

    const struct found *f = finish_trace(w);

    assert_int_equal(f->calls, 2);
    assert_int_equal(f->next[1], 0);
}

/* ---- a disk that fails or is slow ------------------------------------------------------------ */

static void
a_full_disk_is_survived_and_counted(void **state)
{
    struct rlimit limit;
    struct hed_trace_writer *w =
        open_writer("a_full_disk_is_survived_and_counted.hed", false, 65536);
    uint64_t records;
    uint64_t dropped;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);

    const struct rlimit small = {200 << 10, limit.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (uint32_t i = 0; i < 20000; i++)
        (void)put_call(w, 0, i, 60);
    hed_trace_writer_close(w);
    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records + dropped >= 20000); /* records about drops may be added */

    struct hed_trace *t = read_back(path);
    const struct hed_trace_state *s = hed_trace_state(t);

    /* Records that count as written are in the file; all others count as dropped. */
    assert_true(s->records > 0 && s->records < 20000);
    assert_true(records == s->records);
    assert_false(s->ended);
    hed_trace_close(t);

    const uint64_t before = records;

    (void)put_call(w, 0, 20000, 0);
    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records == before && dropped > 0);
    hed_trace_writer_free(w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- truncation ------------------------------------------------------------------------------ */

static void
long_bodies_are_truncated_and_marked(void **state)
{
    static const uint8_t bytes[HED_TRACE_BODY_MAX + 4096];
    struct hed_trace_writer *w = open_writer("long_bodies_are_cut_and_marked.hed", false, 65536);
    struct hed_trace_cursor c;
    struct hed_trace_record r;

    for (size_t n = HED_TRACE_BODY_MAX - 8; n < sizeof bytes; n += 500) {
        struct hed_trace_put put;
        struct hed_enc *e = hed_trace_begin(w, &put);

        assert_non_null(e);
        hed_put_u64(e, n);
        hed_put_raw(e, bytes, n);
        hed_put_u8(e, 1);
        hed_trace_end(w, &put, &(struct hed_trace_head){.kind = HED_TRACE_CALL});
    }
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);

    c = hed_trace_cursor_over(t);
    for (size_t n = HED_TRACE_BODY_MAX - 8; n < sizeof bytes; n += 500) {
        uint64_t word;

        assert_true(hed_trace_next(&c, &r));
        memcpy(&word, r.body, 8);
        assert_true(word == n);
        /* There is space for 64 more bytes of data. */
        assert_int_equal(r.flags & HED_TRACE_CUT, n + 9 > HED_TRACE_BODY_MAX + 64);
    }
    assert_false(hed_trace_next(&c, &r));
    hed_trace_close(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(block_mode_loses_nothing),
    cmocka_unit_test(drop_mode_counts_what_it_drops),
    cmocka_unit_test(threads_that_end_leave_everything),
    cmocka_unit_test(threads_without_a_ring_are_counted),
    cmocka_unit_test(late_records_are_written_at_once),
    cmocka_unit_test(a_writer_begins_one_file_after_the_other),
    cmocka_unit_test(only_an_older_trace_is_replaced),
    cmocka_unit_test(a_trace_that_is_being_written_stays),
    cmocka_unit_test(files_change_under_threads_that_record),
    cmocka_unit_test(closing_under_load_loses_nothing),
    cmocka_unit_test(a_forked_child_leaves_the_file_alone),
    cmocka_unit_test(a_full_disk_is_survived_and_counted),
    cmocka_unit_test(long_bodies_are_truncated_and_marked),
};

HED_UNIT_MAIN(tests)
