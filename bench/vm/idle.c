/* A program that has a session and does nothing with it: what does it cost the host?
 *
 * It has launched work and waited for it, says "here", and sleeps until it is killed.
 */
#include <unistd.h>

#include "../library.h"

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry nothing()\n{ ret; }\n";

int
main(void)
{
    CUmodule m;
    CUfunction f;

    open_library();
    open_context();
    MUST(CU(cuModuleLoadData)(&m, ptx));
    MUST(CU(cuModuleGetFunction)(&f, m, "nothing"));
    MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    MUST(CU(cuCtxSynchronize)());
    puts("here");
    fflush(stdout);
    for (;;)
        pause();
}
