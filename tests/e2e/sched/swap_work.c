/* A program for the tests of swapping, which does what it is told, line by line, and says so:
 *
 *     take MIB    allocates device memory and fills it; "took RESULT", 0 or 2 (no memory)
 *     mix N       runs N kernels over all blocks; "mixed"
 *     check       compares all blocks with what they must be; "right" or "wrong"
 *     free        frees the last block; "freed"
 *     hold        puts a function on a stream that does not end; "holds"
 *     let         lets it end; "let"
 *
 * It says "ready" when it begins, and ends with its input.
 */
#include "conformance/conf.h"

#include <semaphore.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define WORDS 65536u /* of each block that kernels change */
#define BLOCKS 16

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* p[i] = p[i] * 1664525 + i */
    ".visible .entry mix(.param .u64 p)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d0, [p];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    "mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; ld.global.u32 %r5, [%d0];\n"
    "mad.lo.u32 %r5, %r5, 1664525, %r2; st.global.u32 [%d0], %r5; ret;\n}\n";

static struct block {
    CUdeviceptr at;
    size_t words;
    uint32_t filled;
    uint32_t *mixed; /* WORDS of them */
} blocks[BLOCKS];
static unsigned count;
static CUfunction mix;
static CUstream stream;
static sem_t gate;

static CUresult
take_block(size_t mib)
{
    struct block *b = &blocks[count];
    CUresult r;

    CHECK(count < BLOCKS, "too many blocks");
    b->words = mib * MIB / sizeof(uint32_t);
    r = CU(cuMemAlloc_v2)(&b->at, mib * MIB);
    if (r != CUDA_SUCCESS)
        return r;
    b->filled = 0x1234567u * ++count;
    OK(CU(cuMemsetD32_v2)(b->at, b->filled, b->words));
    OK(CU(cuCtxSynchronize)()); /* the stream does not wait for it */
    b->mixed = malloc(WORDS * sizeof *b->mixed);
    CHECK(b->mixed, "no memory");
    for (uint32_t i = 0; i < WORDS; i++)
        b->mixed[i] = b->filled;
    return r;
}

static void
mix_blocks(unsigned times)
{
    for (unsigned n = 0; n < times; n++) {
        for (unsigned k = 0; k < count; k++) {
            struct block *b = &blocks[k];
            void *params[] = {&b->at};

            OK(CU(cuLaunchKernel)(mix, WORDS / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
            for (uint32_t i = 0; i < WORDS; i++)
                b->mixed[i] = b->mixed[i] * 1664525 + i;
        }
    }
    OK(CU(cuStreamSynchronize)(stream));
}

static bool
is_block_right(const struct block *b)
{
    uint32_t *got = malloc(b->words * sizeof *got);
    bool right = true;

    CHECK(got, "no memory");
    OK(CU(cuMemcpyDtoH_v2)(got, b->at, b->words * sizeof *got));
    for (size_t i = 0; i < b->words && right; i++)
        right = got[i] == (i < WORDS ? b->mixed[i] : b->filled);
    free(got);
    return right;
}

static bool
are_blocks_right(void)
{
    for (unsigned k = 0; k < count; k++)
        if (!is_block_right(&blocks[k]))
            return false;
    return true;
}

static void
wait_at_gate(void *arg)
{
    (void)arg;
    while (sem_wait(&gate) != 0)
        continue;
}

static void
do_line(const char *line)
{
    unsigned n = 0;

    if (sscanf(line, "take %u", &n) == 1) {
        printf("took %d\n", (int)take_block(n));
    } else if (sscanf(line, "mix %u", &n) == 1) {
        mix_blocks(n);
        printf("mixed\n");
    } else if (strcmp(line, "check\n") == 0) {
        printf("%s\n", are_blocks_right() ? "right" : "wrong");
    } else if (strcmp(line, "free\n") == 0) {
        OK(CU(cuMemFree_v2)(blocks[--count].at));
        free(blocks[count].mixed);
        printf("freed\n");
    } else if (strcmp(line, "hold\n") == 0) {
        OK(CU(cuLaunchHostFunc)(stream, wait_at_gate, NULL));
        printf("holds\n");
    } else if (strcmp(line, "let\n") == 0) {
        CHECK(sem_post(&gate) == 0, "sem_post");
        OK(CU(cuStreamSynchronize)(stream));
        printf("let\n");
    } else {
        CHECK(false, "what is %s", line);
    }
    fflush(stdout);
}

int
main(void)
{
    CUcontext context;
    CUmodule module;
    char line[64];

    CHECK(sem_init(&gate, 0, 0) == 0, "sem_init");
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    OK(CU(cuCtxSetCurrent)(context));
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&mix, module, "mix"));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        do_line(line);
    return 0;
}
