/* Memory of a remote machine: blocks that stay mapped, the routes of copies, and frees in stream
 * order. The peer records what it is told. */
#include "unit/remote/peer.h"

#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "unit/driver/memory_make.h"

struct heard {
    unsigned puts;                   /* pieces of work */
    unsigned copies;                 /* copies of memory of this process */
    bool to_host, wait;              /* of the last of those copies */
    enum hed_work_kind kind;         /* of the last work */
    uint64_t shared_at, shared_size; /* host memory that the peer has too */
    uint64_t reached;                /* how far streams have come */
};

static struct heard *
heard(void *m)
{
    return ((struct fake *)m)->data;
}

static CUresult
context_made(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
    return CUDA_SUCCESS;
}

static void
context_gone(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
}

static CUresult
context_wait(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
    return CUDA_SUCCESS;
}

static void
stream_changed(void *m, struct hed_stream *s)
{
    (void)m;
    (void)s;
}

static CUresult
stream_wait(void *m, struct hed_stream *s)
{
    (void)m;
    (void)s;
    return CUDA_SUCCESS;
}

static void
stream_look(void *m, struct hed_stream *s)
{
    hed_lock(&s->lock);
    hed_remote_told_locked(s, heard(m)->reached);
    hed_unlock(&s->lock);
}

static CUresult
put(void *m, struct hed_stream *s, struct hed_work *w)
{
    (void)s;
    heard(m)->puts++;
    heard(m)->kind = w->kind;
    return CUDA_SUCCESS;
}

static CUresult
copy_host(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host, bool wait)
{
    (void)s;
    (void)c;
    heard(m)->copies++;
    heard(m)->to_host = to_host;
    heard(m)->wait = wait;
    return CUDA_SUCCESS;
}

static bool
shares(void *m, uint64_t at, uint64_t size)
{
    const struct heard *h = heard(m);

    return at >= h->shared_at && size <= h->shared_size &&
           at - h->shared_at <= h->shared_size - size;
}

static size_t
memory_left(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
    return 5 * MIB;
}

static bool
no_functions_wait(void *m)
{
    return false;
}

static const struct peer peer = {
    .context_made = context_made,
    .context_gone = context_gone,
    .context_wait = context_wait,
    .stream_made = stream_changed,
    .stream_gone = stream_changed,
    .stream_wait = stream_wait,
    .stream_query = stream_wait,
    .stream_look = stream_look,
    .put = put,
    .copy_host = copy_host,
    .functions_wait = no_functions_wait,
    .shares = shares,
    .memory_left = memory_left,
};

static struct fake *
far_away(struct heard *h)
{
    struct fake *f = peer_create(1, &peer, h);

    (void)fake_use_primary(f, 0);
    return f;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void
a_spare_block_is_used_again(void **state)
{
    struct fake *f = ready(1);
    struct hed_blocks *b = &f->driver->memory->plain[0];
    CUdeviceptr p;

    (void)state;
    b->spare_most = 8 * MIB;

    const unsigned maps = f->maps, unmaps = f->unmaps;
    const uint64_t before = used(f);

    for (int i = 0; i < 100; i++) {
        ok(fake_call(f, cuMemAlloc_v2, &p, 1000));
        assert_true(used(f) > before);
        ok(fake_call(f, cuMemFree_v2, p));
        assert_int_equal(used(f), before); /* spare memory has no owner */
        ok(fake_call(f, cuMemAlloc_v2, &p, 3 * MIB));
        ok(fake_call(f, cuMemFree_v2, p));
    }
    assert_int_equal(f->maps - maps, 2);
    assert_int_equal(f->unmaps, unmaps);
    /* A third block would be more than may be kept. */
    ok(fake_call(f, cuMemAlloc_v2, &p, 5 * MIB));
    ok(fake_call(f, cuMemFree_v2, p));
    assert_int_equal(f->unmaps - unmaps, 1);
    fake_free(f);
}

static void
spare_blocks_go_when_memory_is_short(void **state)
{
    struct hed_profile_device small;

    (void)state;
    fake_profile(&small, 0);
    /* A device of usual size does not fit into the address space that ThreadSanitizer leaves. */
    small.profile.memory = 256 * MIB;

    struct fake *f = fake_create_with(&small, 1);

    (void)fake_use_primary(f, 0);

    struct hed_blocks *b = &f->driver->memory->plain[0];
    CUdeviceptr p, all;

    b->spare_most = 64 * MIB;
    ok(fake_call(f, cuMemAlloc_v2, &p, 32 * MIB));
    ok(fake_call(f, cuMemFree_v2, p));
    assert_int_equal(b->spare_bytes, 32 * MIB);
    /* The machine refuses to map more until the driver has given back its spare blocks. */
    f->fail_map = 1;
    ok(fake_call(f, cuMemAlloc_v2, &p, 2 * MIB));
    assert_int_equal(b->spare_bytes, 0);
    ok(fake_call(f, cuMemFree_v2, p));
    assert_int_equal(b->spare_bytes, 2 * MIB);
    /* A program can allocate all of the device although part of it is spare. */
    ok(fake_call(f, cuMemAlloc_v2, &all, small.profile.memory - used(f)));
    ok(fake_call(f, cuMemFree_v2, all));
    fake_free(f);
}

static void
blocks_are_multiples_of_the_unit(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p;

    (void)state;
    f->driver->memory->plain[0].unit = 2 * MIB;

    const uint64_t before = used(f);

    ok(fake_call(f, cuMemAlloc_v2, &p, 3 * MIB + 1));
    assert_int_equal(used(f) - before, 4 * MIB);
    assert_int_equal(p % (2 * MIB), 0);
    ok(fake_call(f, cuMemFree_v2, p));
    fake_free(f);
}

/* ---- which way copies go --------------------------------------------------------------------- */

static void
pageable_memory_is_copied_from_here(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    CUdeviceptr p;
    char mine[64];

    (void)state;
    ok(fake_call(f, cuMemAlloc_v2, &p, sizeof mine));
    ok(fake_call(f, cuMemcpyHtoD_v2, p, mine, sizeof mine));
    assert_true(h.copies == 1 && !h.to_host && !h.wait); /* the bytes were read during the call */
    ok(fake_call(f, cuMemcpyHtoDAsync_v2, p, mine, sizeof mine));
    assert_true(h.copies == 2 && !h.to_host && !h.wait);
    ok(fake_call(f, cuMemcpyDtoH_v2, mine, p, sizeof mine));
    assert_true(h.copies == 3 && h.to_host && h.wait);
    ok(fake_call(f, cuMemcpyDtoHAsync_v2, mine, p, sizeof mine));
    assert_true(h.copies == 4 && h.to_host && h.wait);
    assert_int_equal(h.puts, 0);
    ok(fake_call(f, cuMemcpyDtoD_v2, p, p + 32, 16));
    assert_true(h.puts == 1 && h.kind == HED_WORK_COPY);
    ok(fake_call(f, cuMemsetD8_v2, p, 1, 16));
    assert_true(h.puts == 2 && h.kind == HED_WORK_FILL);
    ok(fake_call(f, cuMemFree_v2, p));
    fake_free(f);
}

static void
registered_memory_is_written_later(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    CUdeviceptr p;
    static char mine[4096];

    (void)state;
    ok(fake_call(f, cuMemAlloc_v2, &p, sizeof mine));
    ok(fake_call(f, cuMemHostRegister_v2, mine, sizeof mine, 0));
    ok(fake_call(f, cuMemcpyDtoHAsync_v2, mine, p, sizeof mine));
    assert_true(h.copies == 1 && h.to_host && !h.wait);
    ok(fake_call(f, cuMemcpyDtoH_v2, mine, p, sizeof mine));
    assert_true(h.copies == 2 && h.to_host && h.wait);
    ok(fake_call(f, cuMemcpyHtoD_v2, p, mine, sizeof mine));
    assert_true(h.copies == 3 && !h.to_host && h.wait);
    ok(fake_call(f, cuMemHostUnregister, mine));
    ok(fake_call(f, cuMemFree_v2, p));
    fake_free(f);
}

static void
shared_memory_is_not_copied_from_here(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    CUdeviceptr p;
    void *pinned;

    (void)state;
    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));
    ok(fake_call(f, cuMemHostAlloc, &pinned, 4096, 0));
    ok(fake_call(f, cuMemcpyHtoDAsync_v2, p, pinned, 4096));
    assert_int_equal(h.copies, 1); /* the peer does not have that memory */
    h.shared_at = (uint64_t)(uintptr_t)pinned;
    h.shared_size = 4096;
    ok(fake_call(f, cuMemcpyHtoDAsync_v2, p, pinned, 4096));
    ok(fake_call(f, cuMemcpyDtoHAsync_v2, pinned, p, 4096));
    assert_int_equal(h.copies, 1);
    assert_int_equal(h.puts, 2);
    ok(fake_call(f, cuMemFreeHost, pinned));
    ok(fake_call(f, cuMemFree_v2, p));
    fake_free(f);
}

static void
host_memory_is_copied_here(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    char from[8] = "heddle", to[8] = "";

    (void)state;
    ok(fake_call(f, cuMemcpy, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, 8));
    assert_string_equal(to, "heddle");
    assert_int_equal(h.puts + h.copies, 0);
    fake_free(f);
}

static void
others_use_the_device_too(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    size_t left, total;

    (void)state;
    ok(fake_call(f, cuMemGetInfo_v2, &left, &total));
    assert_int_equal(left, 5 * MIB);
    assert_int_equal(total, FAKE_MEMORY);
    fake_free(f);
}

/* ---- frees in the order of streams ----------------------------------------------------------- */

static void
freed_memory_waits_for_its_stream(void **state)
{
    struct heard h = {0};
    struct fake *f = far_away(&h);
    CUdeviceptr a, b, c;
    CUstream s, t;

    (void)state;
    ok(fake_call(f, cuStreamCreate, &s, CU_STREAM_NON_BLOCKING));
    ok(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
    ok(fake_call(f, cuMemAllocAsync, &a, 4096, s));
    ok(fake_call(f, cuMemsetD8Async, a, 1, 4096, s));
    ok(fake_call(f, cuMemFreeAsync, a, s));
    assert_int_equal(h.puts, 1); /* this side handles memory */
    bad(fake_call(f, cuMemFreeAsync, a, s));
    /* Another stream does not get the memory before the first has come so far; the same stream
     * does. */
    ok(fake_call(f, cuMemAllocAsync, &b, 4096, t));
    assert_int_not_equal(b, a);
    ok(fake_call(f, cuMemAllocAsync, &c, 4096, s));
    assert_int_equal(c, a);
    ok(fake_call(f, cuMemFreeAsync, c, s));
    h.reached = 1;
    ok(fake_call(f, cuMemFreeAsync, b, t));
    ok(fake_call(f, cuMemAllocAsync, &b, 4096, t));
    ok(fake_call(f, cuMemAllocAsync, &c, 4096, t));
    assert_true(b == a || c == a);
    ok(fake_call(f, cuMemFree_v2, b));
    ok(fake_call(f, cuMemFree_v2, c));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_spare_block_is_used_again),
    cmocka_unit_test(spare_blocks_go_when_memory_is_short),
    cmocka_unit_test(blocks_are_multiples_of_the_unit),
    cmocka_unit_test(pageable_memory_is_copied_from_here),
    cmocka_unit_test(registered_memory_is_written_later),
    cmocka_unit_test(shared_memory_is_not_copied_from_here),
    cmocka_unit_test(host_memory_is_copied_here),
    cmocka_unit_test(others_use_the_device_too),
    cmocka_unit_test(freed_memory_waits_for_its_stream),
};

HED_UNIT_MAIN(tests)
