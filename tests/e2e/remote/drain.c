/* For drain.py: writes and reads memory of the device until a line comes, and says that all was
 * right. It prints "ready" before, and "good" after that. */
#include "conformance/conf.h"

#include <poll.h>
#include <unistd.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define WORDS 4096u

static bool
has_line(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 1) > 0;
}

int
main(void)
{
    static unsigned expected[WORDS], got[WORDS];
    CUdeviceptr at = 0;
    CUcontext ctx = NULL;

    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&ctx, 0));
    OK(CU(cuCtxSetCurrent)(ctx));
    OK(CU(cuMemAlloc_v2)(&at, sizeof expected));
    OK(CU(cuMemsetD32_v2)(at, 0, WORDS));
    printf("ready\n");
    (void)fflush(stdout);
    for (unsigned i = 1; !has_line(); i++) {
        expected[i % WORDS] = i;
        OK(CU(cuMemsetD32_v2)(at + 4 * (i % WORDS), i, 1));
        OK(CU(cuMemcpyDtoH_v2)(got, at, sizeof got));
        CHECK(memcmp(got, expected, sizeof got) == 0, "after %u writes", i);
    }
    printf("good\n");
    return 0;
}
