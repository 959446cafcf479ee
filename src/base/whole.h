/* Accesses of up to 16 bytes that other threads and processes see whole, or nearly so; and copies
 * of such words.
 *
 * Programs of a GPU rely on a vector being read and written at once: {data, flag, data, flag} of
 * NCCL's protocol LL in 8 bytes at least, {data, data} with a flag behind 120 more bytes in LL128,
 * {status, value} of CUB's scans in 16 bytes, where the flag comes first.
 *
 *     bytes      one access?
 *     1 to 8     always
 *     16         x86-64: where the processor has AVX ("guarantee that the 16-byte memory operations
 *                performed by [V]MOVAPS, [V]MOVDQA ... will always be carried out atomically",
 *                Intel's manual, volume 3, 9.1.1; AMD says the same of its own). AArch64: LDP and
 *                STP where it has FEAT_LSE2. Where they are older than that, a compare-and-
 *                exchange reads and writes 16 bytes at once; memory that is read must be
 *                writable then. On other processors two of 8 bytes.
 *
 * A load reads the end first and acquires, a store releases and writes the end last. So whoever
 * finds the end of something new, finds all of it new, even if it was more than one access.
 * An address that is no multiple of the size (up to 16) is copied in any way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/sanitize.h"

#define HED_WHOLE_MAX 16u

static inline bool
hed_is_whole_place(const void *p, size_t size)
{
    return ((uintptr_t)p & ((size < HED_WHOLE_MAX ? size : HED_WHOLE_MAX) - 1)) == 0;
}

/* Does this processor read and write 16 bytes at once with plain loads and stores? For whoever
 * makes many accesses: ask once, and pass the answer on. */
static inline bool
hed_has_plain_16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx");
#elif defined(__aarch64__)
    return getauxval(AT_HWCAP) & (1ul << 25); /* HWCAP_USCAT: FEAT_LSE2 */
#else
    return false;
#endif
}

#if defined(__x86_64__)

/* Replaces v[0] and v[1] by what was there; it is `wanted` now, if the two were equal. */
static inline bool
hed_exchange_16(void *at, uint64_t *v, const uint64_t *wanted)
{
    bool done;

    __asm__ volatile("lock cmpxchg16b %[at]"
                     : [at] "+m"(*(char(*)[16])at), "+a"(v[0]), "+d"(v[1]), "=@ccz"(done)
                     : "b"(wanted[0]), "c"(wanted[1])
                     : "memory");
    return done;
}

static inline void
hed_load_locked_16(const void *from, void *to)
{
    uint64_t v[2] = {0, 0};
    const uint64_t same[2] = {0, 0};

    (void)hed_exchange_16((void *)(uintptr_t)from, v, same);
    memcpy(to, v, 16);
}

static inline void
hed_store_locked_16(void *to, const void *from)
{
    uint64_t v[2] = {0, 0}, wanted[2];

    memcpy(wanted, from, 16);
    while (!hed_exchange_16(to, v, wanted))
        ;
}

/* No barrier is needed: x86-64 keeps the order of loads and that of stores. */
static inline void
hed_load_whole_16(const void *from, void *to, bool plain)
{
    long long v __attribute__((vector_size(16)));

    if (!plain) {
        hed_load_locked_16(from, to);
        return;
    }
    __asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(const char(*)[16])from) : "memory");
    memcpy(to, &v, 16);
}

static inline void
hed_store_whole_16(void *to, const void *from, bool plain)
{
    long long v __attribute__((vector_size(16)));

    if (!plain) {
        hed_store_locked_16(to, from);
        return;
    }
    memcpy(&v, from, 16);
    __asm__ volatile("movdqa %1, %0" : "=m"(*(char(*)[16])to) : "x"(v) : "memory");
}

#elif defined(__aarch64__)

/* A pair is known to be one if what was read can be written back. */
static inline void
hed_load_locked_16(const void *from, void *to)
{
    uint64_t v[2], failed;

    __asm__ volatile("1: ldaxp %[low], %[high], [%[at]]\n"
                     "stxp %w[failed], %[low], %[high], [%[at]]\n"
                     "cbnz %w[failed], 1b\n"
                     : [low] "=&r"(v[0]), [high] "=&r"(v[1]), [failed] "=&r"(failed)
                     : [at] "r"(from)
                     : "memory");
    memcpy(to, v, 16);
}

static inline void
hed_store_locked_16(void *to, const void *from)
{
    uint64_t v[2], low, high, failed;

    memcpy(v, from, 16);
    __asm__ volatile("1: ldxp %[low], %[high], [%[at]]\n"
                     "stlxp %w[failed], %[a], %[b], [%[at]]\n"
                     "cbnz %w[failed], 1b\n"
                     : [low] "=&r"(low), [high] "=&r"(high), [failed] "=&r"(failed)
                     : [at] "r"(to), [a] "r"(v[0]), [b] "r"(v[1])
                     : "memory");
}

static inline void
hed_load_whole_16(const void *from, void *to, bool plain)
{
    uint64_t v[2];

    if (!plain) {
        hed_load_locked_16(from, to);
        return;
    }
    __asm__ volatile("ldp %0, %1, [%2]\n\tdmb ishld"
                     : "=r"(v[0]), "=r"(v[1])
                     : "r"(from)
                     : "memory");
    memcpy(to, v, 16);
}

static inline void
hed_store_whole_16(void *to, const void *from, bool plain)
{
    uint64_t v[2];

    if (!plain) {
        hed_store_locked_16(to, from);
        return;
    }
    memcpy(v, from, 16);
    __asm__ volatile("dmb ish\n\tstp %0, %1, [%2]" : : "r"(v[0]), "r"(v[1]), "r"(to) : "memory");
}

#endif

static inline void
hed_load_whole_8(const void *from, void *to)
{
    /* Acquire: pairs with the release in hed_store_whole_8(). */
    const uint64_t v = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);

    memcpy(to, &v, 8);
}

static inline void
hed_store_whole_8(void *to, const void *from)
{
    uint64_t v;

    memcpy(&v, from, 8);
    /* Release: pairs with the acquire in hed_load_whole_8(). */
    __atomic_store_n((uint64_t *)to, v, __ATOMIC_RELEASE);
}

/* Loads 1, 2, 4, 8 or a multiple of 16 bytes. plain: hed_has_plain_16(). */
static inline void
hed_load_whole(const void *from, void *to, size_t size, bool plain)
{
    const char *f = from;
    char *t = to;

    if (!hed_is_whole_place(from, size)) {
        memcpy(to, from, size);
        return;
    }
    switch (size) {
    case 1:
        *t = __atomic_load_n(f, __ATOMIC_ACQUIRE);
        return;
    case 2: {
        const uint16_t v = __atomic_load_n((const uint16_t *)from, __ATOMIC_ACQUIRE);

        memcpy(t, &v, 2);
        return;
    }
    case 4: {
        const uint32_t v = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);

        memcpy(t, &v, 4);
        return;
    }
    default:
        break;
    }
#if !defined(__x86_64__) && !defined(__aarch64__)
    (void)plain;
#else
    for (; size >= 16; size -= 16)
        hed_load_whole_16(f + size - 16, t + size - 16, plain);
#endif
    for (; size >= 8; size -= 8)
        hed_load_whole_8(f + size - 8, t + size - 8);
}

/* Stores 1, 2, 4, 8 or a multiple of 16 bytes. */
static inline void
hed_store_whole(void *to, const void *from, size_t size, bool plain)
{
    const char *f = from;
    char *t = to;
    size_t at = 0;

    if (!hed_is_whole_place(to, size)) {
        memcpy(to, from, size);
        return;
    }
    switch (size) {
    case 1:
        __atomic_store_n(t, *f, __ATOMIC_RELEASE);
        return;
    case 2: {
        uint16_t v;

        memcpy(&v, f, 2);
        __atomic_store_n((uint16_t *)to, v, __ATOMIC_RELEASE);
        return;
    }
    case 4: {
        uint32_t v;

        memcpy(&v, f, 4);
        __atomic_store_n((uint32_t *)to, v, __ATOMIC_RELEASE);
        return;
    }
    default:
        break;
    }
#if !defined(__x86_64__) && !defined(__aarch64__)
    (void)plain;
#else
    for (; size - at >= 16; at += 16)
        hed_store_whole_16(t + at, f + at, plain);
#endif
    for (; size - at >= 8; at += 8)
        hed_store_whole_8(t + at, f + at);
}

/* memmove(), but whoever looks meanwhile sees every word of 8 bytes at a multiple of 8 in `to`
 * either old or new. A C library's memmove() does so if both sides lie alike. If not, its accesses
 * may be aligned to those of `from`. ThreadSanitizer does not know that and reports a race with
 * whoever looks; with it, words are always copied here. */
static inline void
hed_copy_whole(void *to, const void *from, size_t size)
{
    const size_t head = -(uintptr_t)to & 7;
    const char *f = from;
    char *t = to;
    size_t at = head;

    if ((!HED_TSAN && (((uintptr_t)to ^ (uintptr_t)from) & 7) == 0) || size < head + 8 ||
        (uintptr_t)to - (uintptr_t)from < size) {
        memmove(to, from, size);
        return;
    }
    memmove(t, f, head);
    for (; size - at >= 8; at += 8) {
        uint64_t v;

        memcpy(&v, f + at, 8);
        /* Relaxed: the words of a copy have no order. */
        __atomic_store_n((uint64_t *)(t + at), v, __ATOMIC_RELAXED);
    }
    memmove(t + at, f + at, size - at);
}
