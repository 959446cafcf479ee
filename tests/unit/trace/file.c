/* Tests of trace/file: the name of a trace, its head, and where no trace is made. */
#include "harness/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "see/trace/read.h"
#include "see/trace/write.h"
#include "unit/trace/written.h"

static void
the_head_describes_the_process(void **state)
{
    struct hed_trace_writer *w = open_writer("the_head_describes_the_process.hed", false, 65536);

    assert_string_equal(hed_trace_writer_path(w), path);
    assert_true(put_call(w, 0, 0, 10));
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);
    uint64_t thread = 0;

    assert_true(hed_trace_info_u64(t, "pid") == (uint64_t)getpid());
    assert_string_equal(hed_trace_info(t, "chain"), "trace>test");
    assert_string_equal(hed_trace_info(t, "heddle"), HED_VERSION);
    assert_non_null(strstr(hed_trace_info(t, "exe"), "unit_trace_file"));
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
        assert_true(put_call(w[i], 0, 0, 0));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(finish_trace(w[i])->calls, 1);
}

/* A link counts as an existing file, wherever it leads, and nothing is written through it. */
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
        assert_true(put_call(w, 0, 0, 0));
        assert_int_equal(finish_trace(w)->calls, 1);
        snprintf(link, sizeof link, "%s/%s", getenv("HED_SCRATCH"), targets[i]);
        assert_true(i == 0 ? stat(link, &st) == 0 && st.st_size == 0 : stat(link, &st) != 0);
    }
}

/* Such a name is a user's mistake, so no other name is made up. */
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
a_path_where_no_file_can_be_made_is_refused(void **state)
{
    static char text[8000];
    struct hed_trace_options o = {.path = "/nonexistent/t.hed", .ring_size = 65536};
    struct hed_trace_writer *w = NULL;
    struct hed_why why;

    assert_int_equal(hed_trace_writer_open(&o, &w, &why), HED_ENOTFOUND);
    assert_string_equal(why.text,
                        "cannot create the trace '/nonexistent/t.hed': No such file or directory");
    memset(text, 'x', sizeof text - 1);
    o.path = text;
    assert_int_not_equal(hed_trace_writer_open(&o, &w, &why), 0);
    assert_non_null(strstr(why.text, "the trace's path is too long: 'xxx"));
    assert_null(w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_head_describes_the_process),
    cmocka_unit_test(existing_files_are_never_overwritten),
    cmocka_unit_test(links_are_not_followed),
    cmocka_unit_test(devices_and_folders_are_refused),
    cmocka_unit_test(only_the_owner_gets_the_plain_name),
    cmocka_unit_test(a_path_where_no_file_can_be_made_is_refused),
};

HED_UNIT_MAIN(tests)
