/* Accesses and copies that others see whole. */
#include "base/whole.h"

#include <pthread.h>
#include <stdatomic.h>

#include "harness/unit.h"

#define WORDS 64u
#define ROUNDS 20000u

static void
every_size_is_moved(void **state)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 32, 64};
    _Alignas(64) unsigned char from[80], to[80];

    (void)state;
    for (unsigned i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(5 * i + 1);
    for (unsigned i = 0; i < 4 * sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i / 4], off = i % 2; /* also where it is not aligned */
        const bool plain = i % 4 < 2 && hed_has_plain_16();

        memset(to, 0, sizeof to);
        hed_load_whole(from + off, to, size, plain);
        assert_memory_equal(to, from + off, size);
        assert_int_equal(to[size], 0);
        memset(to, 0, sizeof to);
        hed_store_whole(to + off, from, size, plain);
        assert_memory_equal(to + off, from, size);
        assert_int_equal(to[off + size], 0);
    }
}

static void
copies_are_those_of_memmove(void **state)
{
    unsigned char one[200], two[200];

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        const size_t to = i % 37, from = i * 7 % 41, size = i * 11 % 150;

        for (unsigned k = 0; k < sizeof one; k++)
            one[k] = two[k] = (unsigned char)(k + i);
        memmove(one + to, one + from, size);
        hed_copy_whole(two + to, two + from, size);
        assert_memory_equal(one, two, sizeof one);
    }
}

struct watched {
    _Alignas(64) _Atomic uint64_t words[WORDS];
    _Atomic bool started, stop;
    uint64_t torn;
};

static void *
watch_words(void *arg)
{
    struct watched *w = arg;

    while (!atomic_load(&w->stop)) {
        atomic_store(&w->started, true);
        for (unsigned i = 0; i < WORDS; i++) {
            const uint64_t v = atomic_load_explicit(&w->words[i], memory_order_relaxed);

            w->torn += (uint32_t)v != v >> 32;
        }
    }
    return NULL;
}

/* The source lies at every distance from a multiple of 8. */
static void
words_are_copied_whole(void **state)
{
    static struct watched w;
    static _Alignas(64) unsigned char source[WORDS * 8 + 8];
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, watch_words, &w), 0);
    while (!atomic_load(&w.started))
        ;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t v = (uint64_t)i * 0x01010101 % UINT32_MAX;
        const uint64_t both = v << 32 | v;

        for (unsigned k = 0; k < WORDS; k++)
            memcpy(source + i % 8 + (size_t)k * 8, &both, 8);
        hed_copy_whole((void *)w.words, source + i % 8, sizeof w.words);
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(w.torn, 0);
}

struct pair {
    _Alignas(16) uint64_t words[2];
    _Atomic bool started, stop;
    bool plain;
};

static void *
write_pairs(void *arg)
{
    struct pair *p = arg;

    for (uint64_t i = 1; !atomic_load(&p->stop); i++) {
        const uint64_t both[2] = {i, i};

        hed_store_whole_16(p->words, both, p->plain);
        atomic_store(&p->started, true);
    }
    return NULL;
}

/* As this processor does it, and as older ones do. */
static void
pairs_are_moved_whole(void **state)
{
    const bool plain = hed_has_plain_16();
    const struct {
        bool load, store;
    } ways[] = {{plain, plain}, {false, false}, {plain, false}};

    (void)state;
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct pair p = {.plain = ways[i].store};
        uint64_t last = 0;
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write_pairs, &p), 0);
        while (!atomic_load(&p.started))
            ;
        for (uint32_t k = 0; k < 20 * ROUNDS; k++) {
            uint64_t v[2];

            hed_load_whole_16(p.words, v, ways[i].load);
            assert_int_equal(v[0], v[1]);
            assert_true(v[0] >= last);
            last = v[0];
        }
        atomic_store(&p.stop, true);
        pthread_join(thread, NULL);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_size_is_moved),
    cmocka_unit_test(pairs_are_moved_whole),
    cmocka_unit_test(copies_are_those_of_memmove),
    cmocka_unit_test(words_are_copied_whole),
};

HED_UNIT_MAIN(tests)
