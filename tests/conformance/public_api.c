/* The public API (heddle.h), found in both ways, and its effects on the trace. */
#define HEDDLE_WEAK
#define HEDDLE_DYNAMIC
#include <heddle.h>

#include "conf_trace.h"

static void
use_api(const struct heddle_api *h)
{
    struct heddle_counters all = {.size = sizeof all};
    char *text = malloc(3001);
    int n;

    CHECK(strcmp(h->version(), HED_VERSION) == 0, "version %s", h->version());
    CHECK_IS(h->range_push("outer"), 0);
    CHECK_IS(h->range_push("inner"), 0);
    CHECK_IS(h->mark("a mark"), 0);
    CHECK_IS(CU(cuDriverGetVersion)(&n), CUDA_SUCCESS);
    CHECK_IS(h->range_pop(), 0);
    CHECK_IS(h->range_pop(), 0);
    CHECK_IS(h->set_client("tenant"), 0);
    CHECK_IS(h->set_client(NULL), 0);
    memset(text, 'x', 3000);
    text[3000] = 0;
    CHECK_IS(h->mark(text), 0);
    free(text);
    CHECK(h->mark(NULL) < 0, "a mark without text");
    CHECK(h->range_push(NULL) < 0, "a range without text");

    CHECK_IS(h->record(0), 1);
    CHECK_IS(h->mark("unseen"), 0);
    CHECK_IS(CU(cuDeviceGetCount)(&n), CUDA_SUCCESS);
    CHECK_IS(h->record(1), 0);
    CHECK_IS(h->record(1), 1);
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);

    CHECK_IS(h->read_counters(&all), 0);
    CHECK_IS(all.size, sizeof all);
    CHECK_IS(all.trace_records, 10);
    CHECK_IS(all.trace_dropped, 0);
}

/* Callers that were built with another version of heddle.h. */
static void
other_sizes(const struct heddle_api *h)
{
    struct {
        struct heddle_counters known;
        uint64_t tomorrow;
    } large = {.known.size = sizeof large, .tomorrow = 42};
    struct heddle_counters small = {.size = offsetof(struct heddle_counters, foreign_calls),
                                    .foreign_calls = 43,
                                    .trace_records = 44};

    CHECK_IS(h->read_counters(&large.known), 0);
    CHECK_IS(large.known.size, sizeof large);
    CHECK_IS(large.known.trace_records, 10);
    CHECK_IS(large.tomorrow, 42);
    CHECK_IS(h->read_counters(&small), 0);
    CHECK_IS(small.foreign_calls, 43);
    CHECK_IS(small.trace_records, 44);
    CHECK(h->read_counters(NULL) < 0, "no counters");
    small.size = 0;
    CHECK(h->read_counters(&small) < 0, "a size of 0");
    small.size = sizeof small.size - 1;
    CHECK(h->read_counters(&small) < 0, "less than the size itself");
}

static int
weakly(void)
{
    const struct heddle_api h = {
        heddle_version,      heddle_record,      heddle_set_client,    heddle_mark,
        heddle_range_push,   heddle_range_pop,   heddle_read_counters, heddle_reason,
        heddle_is_running,   heddle_chain,       heddle_problem,       heddle_fault_add,
        heddle_fault_remove, heddle_fault_count, heddle_trace_start,   heddle_trace_stop,
        heddle_trace_file,   heddle_list_memory, heddle_settle,
    };

    CHECK(h.version && h.read_counters && h.mark && h.settle, "the weak functions were not found");
    use_api(&h);
    other_sizes(&h);
    return 0;
}

static int
dynamically(void)
{
    CHECK(!heddle_load(), "found before libcuda was loaded");
    (void)CU(cuInit);

    const struct heddle_api *h = heddle_load();

    CHECK(h, "not found");
    CHECK(h == heddle_load(), "found something else");
    use_api(h);
    other_sizes(h);
    return 0;
}

static void
look_into(const char *path)
{
    struct hed_trace *t = conf_trace_open(path);
    char cut[1025];

    memset(cut, 'x', 1024);
    cut[1024] = 0;
    CHECK_IS(conf_trace_count(t, HED_TRACE_RANGE_BEGIN, "outer"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_RANGE_BEGIN, "inner"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_RANGE_END, NULL), 2);
    CHECK_IS(conf_trace_count(t, HED_TRACE_MARK, "a mark"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_MARK, cut), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_MARK, "unseen"), 0);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CLIENT, "tenant"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CLIENT, ""), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDriverGetVersion"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDeviceGetCount"), 0);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuInit"), 1);
    CHECK_IS(hed_trace_state(t)->records, 10);
    hed_trace_close(t);
}

int
main(int argc, char **argv)
{
    static const char *const ways[] = {"weakly", "dynamically"};

    if (argc > 1)
        return strcmp(argv[1], "weakly") == 0 ? weakly() : dynamically();
    CHECK(!heddle_mark, "heddle is linked in");
    for (int i = 0; i < 2; i++) {
        char path[4096];
        char name[64];
        char text[4096];

        snprintf(name, sizeof name, "%s.hed", ways[i]);
        conf_path(path, sizeof path, name);

        const char *const env[] = {
            "HEDDLE_TRACE", path, "LD_PRELOAD", i == 0 ? conf_libcuda() : NULL, NULL,
        };
        const int status = conf_again(ways[i], text, sizeof text, env);

        CHECK(status == 0, "%s: %d: %s", ways[i], status, text);
        look_into(path);
    }
    return 0;
}
