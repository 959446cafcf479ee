/* Tests of trace/write and trace/file: what threads put is in the file, read back by trace/read. */
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
#include "trace/format.h"
#include "trace/read.h"
#include "trace/write.h"

static const char schema[] = "api test result\ncall 1 one i:n:u64 i:data:b\n";
static const char *const schemas[] = {schema, NULL};

static char path[1024];

static struct hed_trace_writer *
open_writer(const char *name, bool drop, uint64_t ring_size)
{
    const struct hed_trace_options o = {
        .path = path,
        .ring_size = ring_size,
        .drop = drop,
        .data_bytes = 64,
        .chain = "trace>test",
        .schemas = schemas,
    };
    struct hed_trace_writer *w = NULL;
    struct hed_why why = {""};

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);
    if (hed_trace_writer_open(&o, &w, &why) != 0)
        fail_msg("%s", why.text);
    return w;
}

/* One record that says who made it and its number; `result` carries the number, too. */
static bool
put(struct hed_trace_writer *w, uint64_t who, uint32_t number, size_t data)
{
    static const uint8_t bytes[4096] = "data";
    const struct hed_trace_head head = {HED_TRACE_CALL, 0, 1, number + 1, 2, (int32_t)number, 0};
    struct hed_enc *e = hed_trace_begin(w);

    if (!e)
        return false;
    hed_put_u64(e, who << 32 | number);
    hed_put_bulk(e, bytes, data);
    hed_trace_end(w, &head);
    return true;
}

static struct hed_trace *
read_back(const char *file)
{
    struct hed_trace *t = NULL;
    struct hed_why why = {""};

    if (hed_trace_open(file, &t, &why) != 0)
        fail_msg("%s: %s", file, why.text);
    assert_true(hed_trace_state(t)->blocks_bad == 0);
    return t;
}

#define WHO_MAX 8192

struct found {
    uint64_t calls, dropped_records, dropped;
    uint32_t next[WHO_MAX]; /* by who: one more than the last number */
    uint32_t gaps;          /* numbers that did not follow their predecessor */
};

static void
walk(const struct hed_trace *t, struct found *f)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;

    memset(f, 0, sizeof *f);
    while (hed_trace_next(&c, &r)) {
        uint64_t word;

        assert_true(r.body_size >= 8);
        memcpy(&word, r.body, 8);
        if (r.kind == HED_TRACE_DROPPED) {
            f->dropped_records++;
            f->dropped += word;
            continue;
        }

        const uint32_t who = (uint32_t)(word >> 32);
        const uint32_t number = (uint32_t)word;

        assert_int_equal(r.kind, HED_TRACE_CALL);
        assert_int_equal(r.result, number);
        assert_true(r.start == (uint64_t)number + 1 && r.duration == 2);
        assert_true(who < WHO_MAX && number >= f->next[who]);
        f->gaps += number != f->next[who];
        f->next[who] = number + 1;
        f->calls++;
    }
}

/* Closes, frees, and checks what END says against what is there. */
static struct found *
finish(struct hed_trace_writer *w)
{
    static struct found f;
    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_close(w);
    hed_trace_writer_count(w, &records, &dropped);

    struct hed_trace *t = read_back(hed_trace_writer_path(w));
    const struct hed_trace_state *s = hed_trace_state(t);

    walk(t, &f);
    assert_true(s->ended);
    assert_true(s->end_records == records && s->end_dropped == dropped);
    assert_true(s->records == f.calls + f.dropped_records);
    assert_true(records == s->records);
    hed_trace_close(t);
    hed_trace_writer_free(w);
    return &f;
}

static void
the_head_describes_the_process(void **state)
{
    struct hed_trace_writer *w = open_writer("the_head_describes_the_process.hed", false, 65536);

    assert_string_equal(hed_trace_writer_path(w), path);
    assert_true(put(w, 0, 0, 10));
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);
    uint64_t thread = 0;

    assert_true(hed_trace_info_u64(t, "pid") == (uint64_t)getpid());
    assert_string_equal(hed_trace_info(t, "chain"), "trace>test");
    assert_string_equal(hed_trace_info(t, "heddle"), HED_VERSION);
    assert_non_null(strstr(hed_trace_info(t, "exe"), "unit_trace_write"));
    assert_true(hed_trace_info_u64(t, "clock_mono") > 0 && hed_trace_info_u64(t, "clock_wall") > 0);
    assert_true(hed_trace_thread(t, 0, &thread));
    assert_true(thread == (uint64_t)gettid());
    assert_non_null(hed_trace_thread_name(t, thread));
    assert_non_null(hed_trace_schema(t, 0));
    hed_trace_close(t);
}

static void
existing_files_are_never_overwritten(void **state)
{
    struct hed_trace_writer *w[4];
    char expected[1100];

    for (int i = 0; i < 4; i++) {
        w[i] = open_writer("existing_files_are_never_overwritten.hed", false, 65536);
        if (i == 0)
            snprintf(expected, sizeof expected, "%s", path);
        else if (i == 1)
            snprintf(expected, sizeof expected, "%.*s.%d.hed", (int)strlen(path) - 4, path,
                     (int)getpid());
        else
            snprintf(expected, sizeof expected, "%.*s.%d-%d.hed", (int)strlen(path) - 4, path,
                     (int)getpid(), i - 1);
        assert_string_equal(hed_trace_writer_path(w[i]), expected);
        assert_true(put(w[i], 0, 0, 0));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(finish(w[i])->calls, 1);
}

/* A link counts as there, wherever it leads: nothing is ever written through it. */
static void
links_are_not_followed(void **state)
{
    static const char *const targets[] = {"regular", "nowhere"};

    for (int i = 0; i < 2; i++) {
        char name[64];
        char link[1024];
        struct stat st;
        FILE *f;

        snprintf(link, sizeof link, "%s/regular", getenv("HED_SCRATCH"));
        f = fopen(link, "w");
        assert_non_null(f);
        fclose(f);
        snprintf(name, sizeof name, "%s.hed", targets[i]);
        snprintf(link, sizeof link, "%s/%s", getenv("HED_SCRATCH"), name);
        assert_int_equal(symlink(targets[i], link), 0);

        struct hed_trace_writer *w = open_writer(name, false, 65536);

        assert_string_not_equal(hed_trace_writer_path(w), path);
        assert_true(put(w, 0, 0, 0));
        assert_int_equal(finish(w)->calls, 1);
        snprintf(link, sizeof link, "%s/%s", getenv("HED_SCRATCH"), targets[i]);
        assert_true(i == 0 ? stat(link, &st) == 0 && st.st_size == 0 : stat(link, &st) != 0);
    }
}

/* A name that stands for something else is a mistake: no second name is made up beside it. */
static void
devices_and_folders_are_refused(void **state)
{
    static const char *const paths[] = {"/dev/full", "/dev", "."};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct hed_trace_options o = {.path = paths[i], .ring_size = 65536};
        struct hed_trace_writer *w = NULL;
        struct hed_why why = {""};

        assert_int_not_equal(hed_trace_writer_open(&o, &w, &why), 0);
        assert_non_null(strstr(why.text, paths[i]));
        assert_null(w);
    }
}

static void
only_the_owner_gets_the_plain_name(void **state)
{
    struct hed_trace_options o = {.path = path, .owner = 1, .ring_size = 65536, .schemas = schemas};
    struct hed_trace_writer *w;

    snprintf(path, sizeof path, "%s/owner", getenv("HED_SCRATCH"));
    assert_int_equal(hed_trace_writer_open(&o, &w, NULL), 0);
    assert_non_null(strstr(hed_trace_writer_path(w), "/owner."));
    hed_trace_writer_free(w);
    o.owner = (uint64_t)getpid();
    assert_int_equal(hed_trace_writer_open(&o, &w, NULL), 0);
    assert_string_equal(hed_trace_writer_path(w), path);
    hed_trace_writer_free(w);
}

static void
what_cannot_be_made_is_refused(void **state)
{
    static char text[8000];
    struct hed_trace_options o = {.path = "/nonexistent/t.hed", .ring_size = 65536};
    struct hed_trace_writer *w = NULL;
    struct hed_why why;

    assert_int_equal(hed_trace_writer_open(&o, &w, &why), HED_ENOTFOUND);
    assert_string_equal(why.text,
                        "cannot make the trace /nonexistent/t.hed: No such file or directory");
    memset(text, 'x', sizeof text - 1);
    o.path = text;
    assert_int_not_equal(hed_trace_writer_open(&o, &w, &why), 0);
    assert_string_equal(why.text, "the trace's path is too long");
    assert_null(w);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    struct hed_trace_writer *w;
    uint64_t who;
    uint32_t count;
    uint64_t kept;
    pthread_t thread;
};

static void *
work(void *p)
{
    struct worker *me = p;

    for (uint32_t i = 0; i < me->count; i++)
        me->kept += put(me->w, me->who, i, i % 97);
    return NULL;
}

static uint64_t
run_workers(struct hed_trace_writer *w, uint32_t workers, uint32_t count)
{
    struct worker *all = calloc(workers, sizeof *all);
    uint64_t kept = 0;

    for (uint32_t i = 0; i < workers; i++) {
        all[i] = (struct worker){.w = w, .who = i, .count = count};
        assert_int_equal(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
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

    const struct found *f = finish(w);

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

    const struct found *f = finish(w);

    assert_true(f->calls == kept);
    /* The records that say so account for gaps inside, not for a tail that was dropped. */
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
        atomic_fetch_add(&c->kept, put(c->w, who, i, 0));
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
        _exit(77); /* those that were made wait for ever */
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
    assert_int_equal(finish(c.w)->calls, 2 * HED_TRACE_RINGS_MAX);
    free(threads);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
late_records_are_written_at_once(void **state)
{
    struct hed_trace_writer *w = open_writer("late_records_are_written_at_once.hed", false, 65536);

    assert_true(put(w, 0, 0, 1));
    hed_trace_writer_close(w);
    hed_trace_writer_close(w);
    for (uint32_t i = 1; i < 100; i++) {
        assert_true(put(w, 0, i, 1));

        struct hed_trace *t = read_back(path);

        assert_true(hed_trace_state(t)->records == i + 1);
        assert_true(hed_trace_state(t)->ended && hed_trace_state(t)->end_records == i + 1);
        hed_trace_close(t);
    }
    assert_true(run_workers(w, 4, 100) == 400); /* also by new threads */
    assert_int_equal(hed_trace_writer_path(w)[0], '/');
    hed_trace_writer_free(w);
}

static void *
keep_putting(void *p)
{
    struct worker *me = p;

    for (uint32_t i = 0; i < me->count; i++)
        me->kept += put(me->w, me->who, i, 60);
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

    const struct found *f = finish(w);

    assert_true(f->calls == kept);
    assert_int_equal(f->gaps, 0);
}

static void
a_forked_child_leaves_the_file_alone(void **state)
{
    struct hed_trace_writer *w =
        open_writer("a_forked_child_leaves_the_file_alone.hed", false, 65536);
    int status;

    assert_true(put(w, 0, 0, 0));

    settle();

    const pid_t child = fork();

    if (child == 0) {
        hed_trace_writer_forked(w);

        /* A writer of its own, under the same path. */
        struct hed_trace_writer *own =
            open_writer("a_forked_child_leaves_the_file_alone.hed", false, 65536);

        for (uint32_t i = 0; i < 100; i++)
            put(own, 1, i, 50);
        _exit(finish(own)->calls == 100 && strcmp(path, hed_trace_writer_path(w)) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(put(w, 0, 1, 0));

    const struct found *f = finish(w);

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
        (void)put(w, 0, i, 60);
    hed_trace_writer_close(w);
    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records + dropped >= 20000); /* reports of what was dropped may come on top */

    struct hed_trace *t = read_back(path);
    const struct hed_trace_state *s = hed_trace_state(t);

    /* What is counted as written is there; all else is counted as dropped. */
    assert_true(s->records > 0 && s->records < 20000);
    assert_true(records == s->records);
    assert_false(s->ended);
    hed_trace_close(t);

    const uint64_t before = records;

    (void)put(w, 0, 20000, 0);
    hed_trace_writer_count(w, &records, &dropped);
    assert_true(records == before && dropped > 0);
    hed_trace_writer_free(w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- cut ------------------------------------------------------------------------------------- */

static void
long_bodies_are_cut_and_marked(void **state)
{
    static const uint8_t bytes[HED_TRACE_BODY_MAX + 4096];
    struct hed_trace_writer *w = open_writer("long_bodies_are_cut_and_marked.hed", false, 65536);
    struct hed_trace_cursor c;
    struct hed_trace_record r;

    for (size_t n = HED_TRACE_BODY_MAX - 8; n < sizeof bytes; n += 500) {
        struct hed_enc *e = hed_trace_begin(w);

        assert_non_null(e);
        hed_put_u64(e, n);
        hed_put_raw(e, bytes, n);
        hed_put_u8(e, 1);
        hed_trace_end(w, &(struct hed_trace_head){.kind = HED_TRACE_CALL});
    }
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);

    c = hed_trace_cursor_over(t);
    for (size_t n = HED_TRACE_BODY_MAX - 8; n < sizeof bytes; n += 500) {
        uint64_t word;

        assert_true(hed_trace_next(&c, &r));
        memcpy(&word, r.body, 8);
        assert_true(word == n);
        /* There is room for 64 bytes of data besides. */
        assert_int_equal(r.flags & HED_TRACE_CUT, n + 9 > HED_TRACE_BODY_MAX + 64);
    }
    assert_false(hed_trace_next(&c, &r));
    hed_trace_close(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_head_describes_the_process),
    cmocka_unit_test(existing_files_are_never_overwritten),
    cmocka_unit_test(links_are_not_followed),
    cmocka_unit_test(devices_and_folders_are_refused),
    cmocka_unit_test(only_the_owner_gets_the_plain_name),
    cmocka_unit_test(what_cannot_be_made_is_refused),
    cmocka_unit_test(block_mode_loses_nothing),
    cmocka_unit_test(drop_mode_counts_what_it_drops),
    cmocka_unit_test(threads_that_end_leave_everything),
    cmocka_unit_test(threads_without_a_ring_are_counted),
    cmocka_unit_test(late_records_are_written_at_once),
    cmocka_unit_test(closing_under_load_loses_nothing),
    cmocka_unit_test(a_forked_child_leaves_the_file_alone),
    cmocka_unit_test(a_full_disk_is_survived_and_counted),
    cmocka_unit_test(long_bodies_are_cut_and_marked),
};

HED_UNIT_MAIN(tests)
