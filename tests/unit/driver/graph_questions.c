/* What a program can ask about graphs and captures without changing them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/driver/busy.h"

static void
questions_about_the_legacy_stream_leave_captures_alone(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUstream blocking;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph g = NULL;

    OK(fake_call(f, cuStreamCreate, &blocking, CU_STREAM_DEFAULT));
    OK(fake_call(f, cuStreamBeginCapture_v2, blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(fake_call(f, cuStreamIsCapturing, NULL, &status),
                     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(fake_call(f, cuStreamGetCaptureInfo, NULL, &status, &id),
                     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(fake_call(f, cuStreamGetCaptureInfo_v2, NULL, &status, &id, NULL, NULL, NULL),
                     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(
        fake_call(f, cuStreamGetCaptureInfo_v3, NULL, &status, &id, NULL, NULL, NULL, NULL),
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    OK(fake_call(f, cuStreamEndCapture, blocking, &g));
    assert_non_null(g);
    OK(fake_call(f, cuGraphDestroy, g));
    /* Its use does not. */
    OK(fake_call(f, cuStreamBeginCapture_v2, blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(fake_call(f, cuStreamQuery, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(fake_call(f, cuStreamEndCapture, blocking, &g),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    busy_fake_free(f);
}

static void
do_nothing(void *data)
{
}

/* Draws a graph into a file and reads it again. */
static void
draw(struct fake *f, CUgraph g, unsigned flags, char *text, size_t size)
{
    char path[512];
    const char *folder = getenv("HED_SCRATCH");

    (void)snprintf(path, sizeof path, "%s/graph.dot", folder ? folder : "/tmp");
    OK(fake_call(f, cuGraphDebugDotPrint, g, path, flags));

    FILE *file = fopen(path, "r");

    assert_non_null(file);

    const size_t got = fread(text, 1, size - 1, file);

    text[got] = '\0';
    (void)fclose(file);
    (void)unlink(path);
}

static void
a_graph_can_be_drawn(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    const CUDA_HOST_NODE_PARAMS_v1 nothing = {do_nothing, NULL};
    CUgraph g;
    CUgraphNode a, b;
    char plain[4096], host[4096], other[4096], verbose[4096];

    OK(fake_call(f, cuGraphCreate, &g, 0));
    OK(fake_call(f, cuGraphAddHostNode, &a, g, NULL, 0, &nothing));
    OK(fake_call(f, cuGraphAddHostNode, &b, g, &a, 1, &nothing));
    /* NVIDIA's runtime always asks for its own types. */
    draw(f, g, CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES, plain, sizeof plain);
    assert_non_null(strstr(plain, "HOST"));
    assert_non_null(strstr(plain, " -> "));
    assert_null(strstr(plain, "function 0x"));
    draw(f, g, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS, host, sizeof host);
    assert_non_null(strstr(host, "function 0x"));
    assert_null(strstr(host, "1 in, 0 out"));
    draw(f, g, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, other, sizeof other);
    assert_string_equal(other, plain);
    draw(f, g, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, verbose, sizeof verbose);
    assert_non_null(strstr(verbose, "function 0x"));
    assert_non_null(strstr(verbose, "1 in, 0 out"));
    assert_int_equal(fake_call(f, cuGraphDebugDotPrint, g, "/nowhere/graph.dot", 0),
                     CUDA_ERROR_OPERATING_SYSTEM);
    OK(fake_call(f, cuGraphDestroy, g));
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(questions_about_the_legacy_stream_leave_captures_alone),
    cmocka_unit_test(a_graph_can_be_drawn),
};

HED_UNIT_MAIN(tests)
