/* Vectors with an order are seen whole: a kernel and a thread of the host write and read the same
 * memory, as two GPUs do with NCCL's protocols.
 *
 *   LL      {data, flag, data, flag}: 8 bytes at least are one access
 *   LL128   128 bytes of eight lanes, with the flag at the end: whoever finds the flag new, finds
 *           everything before it new
 *
 * A thread sees a torn access only if both sides run at the same time, by chance. Interruptions of
 * the kernel, by which CUB's pairs are looked at, always see some.
 */
#include "harness/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/whole.h"
#include "ptx/exec/harness.h"

#define LANES 32u
#define ROUNDS 20000u

struct memory {
    _Alignas(128) _Atomic uint64_t words[LANES][2];
    uint32_t torn[LANES]; /* by the kernel */
    _Atomic bool started, stop;
    uint64_t seen_torn; /* by the host */
};

struct form {
    const char *access; /* what stands between ld and the operands */
    unsigned bytes;     /* of an element */
    unsigned count;
};

static const struct form forms[] = {
    {".volatile.global.v4.u32", 4, 4}, {".relaxed.sys.global.v4.b32", 4, 4},
    {".relaxed.gpu.v2.b32", 4, 2},     {".volatile.v4.b16", 2, 4},
    {".volatile.v2.u32", 4, 2},
};

/* ---- LL: the two halves of every 8 bytes are equal ------------------------------------------- */

static void *
write_halves(void *arg)
{
    struct memory *m = arg;

    for (uint64_t i = 0; !atomic_load(&m->stop); i++) {
        const uint64_t half = (i * 0x10001) & 0xffffffff;

        for (unsigned k = 0; k < 2 * LANES; k++)
            atomic_store_explicit(&m->words[k / 2][k % 2], half << 32 | half, memory_order_relaxed);
        atomic_store(&m->started, true);
    }
    return NULL;
}

static void *
read_halves(void *arg)
{
    struct memory *m = arg;

    while (!atomic_load(&m->stop)) {
        atomic_store(&m->started, true);
        for (unsigned k = 0; k < 2 * LANES; k++) {
            const uint64_t v = atomic_load_explicit(&m->words[k / 2][k % 2], memory_order_relaxed);

            m->seen_torn += (uint32_t)v != v >> 32;
        }
    }
    return NULL;
}

/* ---- LL128: nothing is older than the flag --------------------------------------------------- */

static void *
write_lines(void *arg)
{
    struct memory *m = arg;

    for (uint64_t i = 1; !atomic_load(&m->stop); i++) {
        for (unsigned k = 0; k < 2 * LANES; k++)
            /* Release: the last of 16 words is the flag. */
            atomic_store_explicit(&m->words[k / 2][k % 2], i, memory_order_release);
        atomic_store(&m->started, true);
    }
    return NULL;
}

static void *
read_lines(void *arg)
{
    struct memory *m = arg;

    while (!atomic_load(&m->stop)) {
        atomic_store(&m->started, true);
        for (unsigned line = 0; line < LANES / 8; line++) {
            /* Acquire: what comes before the flag is read after it. */
            const uint64_t flag =
                atomic_load_explicit(&m->words[line * 8 + 7][1], memory_order_acquire);

            for (unsigned k = 0; k < 15; k++)
                m->seen_torn += atomic_load_explicit(&m->words[line * 8 + k / 2][k % 2],
                                                     memory_order_relaxed) < flag;
        }
    }
    return NULL;
}

/* ---- CUB: {status, value} of 16 bytes are equal ---------------------------------------------- */

static void *
write_pairs(void *arg)
{
    struct memory *m = arg;

    for (uint64_t i = 1; !atomic_load(&m->stop); i++) {
        const uint64_t both[2] = {i, i};

        for (unsigned k = 0; k < LANES; k++)
            hed_store_whole(m->words[k], both, sizeof both, hed_has_plain_16());
        atomic_store(&m->started, true);
    }
    return NULL;
}

static void *
read_pairs(void *arg)
{
    struct memory *m = arg;

    while (!atomic_load(&m->stop)) {
        atomic_store(&m->started, true);
        for (unsigned k = 0; k < LANES; k++) {
            uint64_t v[2];

            hed_load_whole(m->words[k], v, sizeof v, hed_has_plain_16());
            m->seen_torn += v[0] != v[1];
        }
    }
    return NULL;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define BEGIN                                                                                \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                        \
    ".visible .entry k(.param .u64 m, .param .u64 torn, .param .u32 rounds) {\n"             \
    ".reg .pred %%p<8>; .reg .b16 %%h<4>; .reg .b32 %%r<12>; .reg .b64 %%d<8>;\n"            \
    "ld.param.u64 %%d0, [m]; ld.param.u64 %%d1, [torn]; ld.param.u32 %%r9, [rounds];\n"      \
    "mov.u32 %%r8, %%tid.x; mad.wide.u32 %%d0, %%r8, 16, %%d0; mad.wide.u32 %%d1, %%r8, 4, " \
    "%%d1; mov.u32 %%r10, 0; mov.u32 %%r11, 0;\nLOOP:\n"
#define END                                                     \
    "add.u32 %%r10, %%r10, 1; setp.lt.u32 %%p0, %%r10, %%r9;\n" \
    "@%%p0 bra LOOP;\nst.global.u32 [%%d1], %%r11;\nret;\n}\n"
#define COUNT_IF_NOT_EQUAL(a, b) "setp.ne.u32 %%p1, " a ", " b "; @%%p1 add.u32 %%r11, %%r11, 1;\n"

static void
write_text(char *text, size_t size, const struct form *f, bool loads)
{
    if (f->bytes == 4 && f->count == 4)
        snprintf(text, size,
                 loads ? BEGIN
                     "ld%s {%%r0, %%r1, %%r2, %%r3}, [%%d0];\n" COUNT_IF_NOT_EQUAL("%%r0", "%%r1")
                         COUNT_IF_NOT_EQUAL("%%r2", "%%r3") END
                       : BEGIN "st%s [%%d0], {%%r10, %%r10, %%r10, %%r10};\n" END,
                 f->access);
    else if (f->bytes == 4)
        snprintf(text, size,
                 loads ? BEGIN "ld%s {%%r0, %%r1}, [%%d0];\n" COUNT_IF_NOT_EQUAL("%%r0", "%%r1") END
                       : BEGIN "st%s [%%d0], {%%r10, %%r10};\n" END,
                 f->access);
    else
        snprintf(text, size,
                 loads ? BEGIN
                     "ld%s {%%h0, %%h1, %%h2, %%h3}, [%%d0];\n"
                     "mov.b32 %%r0, {%%h0, %%h1}; mov.b32 %%r1, {%%h2, %%h3};\n" COUNT_IF_NOT_EQUAL(
                         "%%r0", "%%r1") END
                       : BEGIN "mov.b32 {%%h0, %%h1}, %%r10;\n"
                               "st%s [%%d0], {%%h0, %%h1, %%h0, %%h1};\n" END,
                 f->access);
}

#define LOAD_LINES                                                                            \
    BEGIN                                                                                     \
    "ld.volatile.global.v2.u64 {%%d2, %%d3}, [%%d0];\n"                                       \
    "mov.b64 {%%r0, %%r1}, %%d3; shfl.sync.idx.b32 %%r2, %%r0, 7, 0x181f, -1;\n"              \
    "shfl.sync.idx.b32 %%r3, %%r1, 7, 0x181f, -1; mov.b64 %%d4, {%%r2, %%r3};\n"              \
    "setp.lt.u64 %%p1, %%d2, %%d4; setp.lt.u64 %%p2, %%d3, %%d4; or.pred %%p1, %%p1, %%p2;\n" \
    "@%%p1 add.u32 %%r11, %%r11, 1;\n" END
#define STORE_LINES \
    BEGIN "cvt.u64.u32 %%d2, %%r10; st.volatile.global.v2.u64 [%%d0], {%%d2, %%d2};\n" END

#define LOAD_PAIRS                                                                           \
    BEGIN                                                                                    \
    "ld%s.v2.u64 {%%d2, %%d3}, [%%d0]; setp.ne.u64 %%p1, %%d2, %%d3;\n@%%p1 add.u32 %%r11, " \
    "%%r11, 1;\n" END
#define STORE_PAIRS BEGIN "cvt.u64.u32 %%d2, %%r10; st%s.v2.u64 [%%d0], {%%d2, %%d2};\n" END

static uint64_t
run_beside(const char *text, enum exec_tier tier, void *(*host)(void *))
{
    static struct memory m;
    struct {
        void *m, *torn;
        uint32_t rounds;
    } params = {&m.words, &m.torn, ROUNDS};
    const struct exec_launch launch = {.threads = LANES, .params = &params};
    pthread_t thread;
    struct exec e;
    uint64_t torn = 0;
    int err;

    memset(&m, 0, sizeof m);
    exec_open(&e, text, tier);
    assert_int_equal(pthread_create(&thread, NULL, host, &m), 0);
    while (!atomic_load(&m.started))
        ;
    err = exec_run(&e, "k", &launch);
    atomic_store(&m.stop, true);
    pthread_join(thread, NULL);
    if (err)
        fail_msg("%s", e.why.text);
    exec_close(&e);
    for (unsigned i = 0; i < LANES; i++)
        torn += m.torn[i];
    return torn + m.seen_torn;
}

static void
check_halves(bool loads)
{
    char text[2048];

    for (unsigned i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
        const struct form *f = &forms[i / 2];

        write_text(text, sizeof text, f, loads);

        const uint64_t torn = run_beside(text, i % 2 ? EXEC_COMPILED : EXEC_BASELINE,
                                         loads ? write_halves : read_halves);

        if (torn)
            fail_msg("%s%s, %s: %llu torn", loads ? "ld" : "st", f->access,
                     i % 2 ? "compiled" : "baseline", (unsigned long long)torn);
    }
}

static void
loaded_vectors_are_whole(void **state)
{
    (void)state;
    check_halves(true);
}

static void
stored_vectors_are_whole(void **state)
{
    (void)state;
    check_halves(false);
}

static void
nothing_loaded_is_older_than_the_end(void **state)
{
    char text[2048];

    (void)state;
    snprintf(text, sizeof text, LOAD_LINES);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(run_beside(text, i ? EXEC_COMPILED : EXEC_BASELINE, write_lines), 0);
}

static void
nothing_stored_is_older_than_the_end(void **state)
{
    char text[2048];

    (void)state;
    snprintf(text, sizeof text, STORE_LINES);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(run_beside(text, i ? EXEC_COMPILED : EXEC_BASELINE, read_lines), 0);
}

/* Not even the order of the halves helps if they are two accesses: CUB's scans have the flag in
 * front, NCCL behind. */
static void
pairs_are_whole(void **state)
{
    char text[2048];

    (void)state;
    /* Without an order only where no more than a plain instruction is needed for it. */
    for (unsigned i = 0; i < (hed_has_plain_16() ? 8 : 4); i++) {
        const bool loads = i & 1;
        const char *how = i & 4 ? ".global.cg" : ".relaxed.gpu.global";

        if (loads)
            snprintf(text, sizeof text, LOAD_PAIRS, how);
        else
            snprintf(text, sizeof text, STORE_PAIRS, how);
        if (run_beside(text, i & 2 ? EXEC_COMPILED : EXEC_BASELINE,
                       loads ? write_pairs : read_pairs) != 0)
            fail_msg("%s%s, %s: torn", loads ? "ld" : "st", how, i & 2 ? "compiled" : "baseline");
    }
}

/* ---- CUB again, by interruptions ------------------------------------------------------------- */

/* A timer interrupts the kernel again and again, and the handler does what another thread would.
 * Between two accesses of a pair, some of many interruptions are sure to come, however many
 * processors there are. */

#define BEAT_NS 20000
#define BEATS 3000u
#define BEATEN_ROUNDS 2000000u /* an end even if signals come late, as with ThreadSanitizer */

static struct {
    _Alignas(128) uint64_t pairs[LANES][2];
    uint32_t torn[LANES];
    _Atomic uint32_t running, stop;
    bool loads; /* the kernel does, and the handler stores */
    uint64_t beats, seen_torn;
} beaten;

static void
beat(int number)
{
    (void)number;
    if (!atomic_load(&beaten.running))
        return;
    beaten.beats++;
    for (unsigned k = 0; k < LANES; k++) {
        const uint64_t both[2] = {beaten.beats, beaten.beats};
        uint64_t v[2];

        if (beaten.loads) {
            hed_store_whole(beaten.pairs[k], both, sizeof both, true);
        } else {
            hed_load_whole(beaten.pairs[k], v, sizeof v, true);
            beaten.seen_torn += v[0] != v[1];
        }
    }
    if (beaten.beats >= BEATS)
        atomic_store(&beaten.stop, 1);
}

static timer_t
begin_beats(void)
{
    const struct sigaction action = {.sa_handler = beat, .sa_flags = SA_RESTART};
    const struct itimerspec every = {{.tv_nsec = BEAT_NS}, {.tv_nsec = BEAT_NS}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    timer_t timer;

    event._sigev_un._tid = gettid();
    assert_int_equal(sigaction(SIGRTMIN, &action, NULL), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
    return timer;
}

#define BEATEN_BEGIN                                                                             \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                            \
    ".visible .entry k(.param .u64 m, .param .u64 torn, .param .u64 control, .param .u32 n) {\n" \
    ".reg .pred %%p<2>; .reg .b32 %%r<12>; .reg .b64 %%d<8>;\n"                                  \
    "ld.param.u64 %%d0, [m]; ld.param.u64 %%d1, [torn]; ld.param.u64 %%d5, [control];\n"         \
    "ld.param.u32 %%r9, [n]; mov.u32 %%r8, %%tid.x; mad.wide.u32 %%d0, %%r8, 16, %%d0;\n"        \
    "mad.wide.u32 %%d1, %%r8, 4, %%d1; mov.u32 %%r10, 0; mov.u32 %%r11, 0;\n"                    \
    "st.relaxed.sys.u32 [%%d5], 1;\nLOOP:\n"
#define BEATEN_END                                                                       \
    "ld.relaxed.sys.u32 %%r7, [%%d5+4]; add.u32 %%r10, %%r10, 1;\n"                      \
    "setp.ge.u32 %%p0, %%r10, %%r9; @%%p0 mov.u32 %%r7, 1; setp.eq.u32 %%p0, %%r7, 0;\n" \
    "@%%p0 bra LOOP;\nst.global.u32 [%%d1], %%r11;\nret;\n}\n"
#define BEATEN_LOADS                                                          \
    BEATEN_BEGIN "ld%s.v2.u64 {%%d2, %%d3}, [%%d0]; setp.ne.u64 %%p1, %%d2, " \
                 "%%d3;\n@%%p1 add.u32 %%r11, %%r11, 1;\n" BEATEN_END
#define BEATEN_STORES \
    BEATEN_BEGIN "cvt.u64.u32 %%d2, %%r10; st%s.v2.u64 [%%d0], {%%d2, %%d2};\n" BEATEN_END

static uint64_t
run_beaten(const char *text, enum exec_tier tier, bool loads)
{
    const struct {
        void *m, *torn, *control;
        uint32_t rounds;
    } params = {beaten.pairs, beaten.torn, &beaten.running, BEATEN_ROUNDS};
    const struct exec_launch launch = {.threads = LANES, .params = &params};
    struct exec e;
    uint64_t torn = 0;

    memset(&beaten, 0, sizeof beaten);
    beaten.loads = loads;
    exec_open(&e, text, tier);

    const timer_t timer = begin_beats();
    const int err = exec_run(&e, "k", &launch);

    assert_int_equal(timer_delete(timer), 0);
    if (err)
        fail_msg("%s", e.why.text);
    exec_close(&e);
    for (unsigned i = 0; i < LANES; i++)
        torn += beaten.torn[i];
    return torn + beaten.seen_torn;
}

static void
interrupted_pairs_are_whole(void **state)
{
    char text[2048];

    (void)state;
    for (unsigned i = 0; i < (hed_has_plain_16() ? 8 : 4); i++) {
        const bool loads = i & 1;
        const char *how = i & 4 ? ".global.cg" : ".relaxed.gpu.global";

        if (loads)
            snprintf(text, sizeof text, BEATEN_LOADS, how);
        else
            snprintf(text, sizeof text, BEATEN_STORES, how);

        const uint64_t torn = run_beaten(text, i & 2 ? EXEC_COMPILED : EXEC_BASELINE, loads);

        if (torn)
            fail_msg("%s%s, %s: %llu torn of %llu", loads ? "ld" : "st", how,
                     i & 2 ? "compiled" : "baseline", (unsigned long long)torn,
                     (unsigned long long)beaten.beats);
    }
}

/* ---- the values ------------------------------------------------------------------------------ */

/* Every size and number of elements comes out as it went in, from one lane and in shared memory. */
static void
elements_keep_their_places(void **state)
{
    _Alignas(16) uint8_t in[64], out[192] = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(3 * i + 1);
    exec_code(".shared .align 16 .b8 room[64];\n.global .align 4 .b32 low[8];\n",
              "ld.volatile.v2.b8 {%c1, %c2}, [%in+2]; st.volatile.v2.b8 [%out+2], {%c1, %c2};\n"
              "ld.volatile.v4.b8 {%c1, %c2, %c3, %c4}, [%in+4];\n"
              "st.volatile.v4.b8 [%out+4], {%c1, %c2, %c3, %c4};\n"
              "ld.relaxed.sys.v4.b16 {%h1, %h2, %h3, %h4}, [%in+8];\n"
              "st.release.sys.v4.b16 [%out+8], {%h1, %h2, %h3, %h4};\n"
              "ld.acquire.gpu.v4.b32 {%r1, %r2, %r3, %r4}, [%in+16];\n"
              "st.relaxed.gpu.v4.b32 [%out+16], {%r1, %r2, %r3, %r4};\n"
              "ld.volatile.v2.b64 {%d1, %d2}, [%in+32]; st.volatile.v2.b64 [%out+32], {%d1, %d2};\n"
              "ld.volatile.v4.b32 {%r1, _, %r3, %r4}, [%in+48];\n"
              "st.volatile.shared.v4.b32 [room+16], {%r1, %r3, %r4, 7};\n"
              "ld.volatile.shared.v2.b64 {%d3, %d4}, [room+16];\n"
              "st.volatile.v2.b64 [%out+64], {%d3, %d4};\n"
              "st.volatile.global.v2.b32 [low+8], {%r1, %r3};\n"
              "ld.volatile.global.v2.b32 {%r5, %r6}, [low+8]; st.v2.b32 [%out+80], {%r5, %r6};\n",
              in, out);
    assert_memory_equal(out + 2, in + 2, 46);
    assert_memory_equal(out + 64, in + 48, 4);
    assert_memory_equal(out + 68, in + 56, 8);
    assert_int_equal(out[76], 7);
    assert_memory_equal(out + 80, in + 48, 4);
    assert_memory_equal(out + 84, in + 56, 4);
}

/* A vector must begin at a multiple of its size, with an order or without. */
static void
misaligned_vectors_trap(void **state)
{
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry k(.param .u64 m) {\n"
                               ".reg .b32 %r<4>; .reg .b64 %d;\nld.param.u64 %d, [m];\n"
                               "ld.volatile.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d];\n"
                               "st.volatile.global.v4.u32 [%d], {%r3, %r2, %r1, %r0};\nret;\n}\n";
    static _Alignas(16) uint32_t room[8];
    const void *at = &room[2];
    const struct exec_launch launch = {.params = &at};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct exec e;

        exec_open(&e, text, i ? EXEC_COMPILED : EXEC_BASELINE);
        assert_int_equal(exec_run(&e, "k", &launch), HED_ESTATE);
        assert_int_equal(e.trap, HED_PTX_TRAP_ALIGN);
        exec_close(&e);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(loaded_vectors_are_whole),
    cmocka_unit_test(stored_vectors_are_whole),
    cmocka_unit_test(nothing_loaded_is_older_than_the_end),
    cmocka_unit_test(nothing_stored_is_older_than_the_end),
    cmocka_unit_test(pairs_are_whole),
    cmocka_unit_test(interrupted_pairs_are_whole),
    cmocka_unit_test(elements_keep_their_places),
    cmocka_unit_test(misaligned_vectors_trap),
};

HED_UNIT_MAIN(tests)
