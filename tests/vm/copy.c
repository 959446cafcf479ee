/* Copies data to the device and back, and looks at every word of it.
 *
 *     copy pinned | pageable MEGABYTES TOTAL-MEGABYTES
 *
 * Buffers have MEGABYTES each. Every round has a pattern of its own, begins at another place in the
 * buffers and has another length, so a word that a round has left behind is not taken for the next
 * round's. Prints "first" after the first round, at the end "ok" and how much went each way.
 * TOTAL-MEGABYTES 0: goes on until it is killed.
 */
#include "conformance/conf.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define WORD sizeof(uint64_t)

static uint64_t
pattern_word(uint64_t round, uint64_t i)
{
    return (round * UINT64_C(0x9e3779b97f4a7c15)) ^ (i * UINT64_C(0x2545f4914f6cdd1d));
}

static void
check_words(const uint64_t *words, uint64_t count, uint64_t round)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK(words[i] == pattern_word(round, i), "round %llu, word %llu of %llu: %llx",
              (unsigned long long)round, (unsigned long long)i, (unsigned long long)count,
              (unsigned long long)words[i]);
}

static uint64_t *
allocate_host(bool pinned, uint64_t bytes)
{
    void *p = NULL;

    if (pinned)
        OK(CU(cuMemAllocHost_v2)(&p, bytes));
    else
        p = malloc(bytes);
    CHECK(p, "no memory");
    return p;
}

static void
copy_round(uint64_t round, uint64_t *out, uint64_t *back, CUdeviceptr device, uint64_t room,
           CUstream stream)
{
    const uint64_t skip = round % 61, count = room - skip - round * 7 % 1021;

    for (uint64_t i = 0; i < count; i++)
        out[skip + i] = pattern_word(round, i);
    if (round % 2) {
        OK(CU(cuMemcpyHtoDAsync_v2)(device + skip * WORD, out + skip, count * WORD, stream));
        OK(CU(cuMemcpyDtoHAsync_v2)(back + skip, device + skip * WORD, count * WORD, stream));
        OK(CU(cuStreamSynchronize)(stream));
    } else {
        OK(CU(cuMemcpyHtoD_v2)(device + skip * WORD, out + skip, count * WORD));
        OK(CU(cuMemcpyDtoH_v2)(back + skip, device + skip * WORD, count * WORD));
    }
    check_words(back + skip, count, round);
}

int
main(int argc, char **argv)
{
    CHECK(argc == 4, "copy pinned | pageable MEGABYTES TOTAL-MEGABYTES");

    const bool pinned = strcmp(argv[1], "pinned") == 0;
    const uint64_t bytes = strtoull(argv[2], NULL, 10) << 20;
    const uint64_t total = strtoull(argv[3], NULL, 10) << 20;
    CUcontext ctx;
    CUstream stream;
    CUdeviceptr device;
    uint64_t done = 0;

    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate_v2)(&ctx, 0, 0));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&device, bytes));

    uint64_t *out = allocate_host(pinned, bytes), *back = allocate_host(pinned, bytes);

    for (uint64_t round = 0; total == 0 || done < total; round++) {
        copy_round(round, out, back, device, bytes / WORD, stream);
        done += bytes;
        if (round == 0) {
            puts("first");
            fflush(stdout);
        }
    }
    printf("ok %llu\n", (unsigned long long)(done >> 20));
    return 0;
}
