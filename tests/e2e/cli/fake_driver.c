/* A libcuda.so.1 for the tests of `heddle doctor`. It misbehaves as FAKE_DRIVER says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuDriverGetVersion(int *version);
int cuInit(unsigned flags);

static int
is(const char *what)
{
    const char *fake = getenv("FAKE_DRIVER");

    return fake && strcmp(fake, what) == 0;
}

int
cuDriverGetVersion(int *version)
{
    *version = 12040;
    return 0;
}

int
cuInit(unsigned flags)
{
    if (is("hang"))
        pause();
    if (is("crash"))
        abort();
    if (is("exit"))
        exit(0);
    if (is("print"))
        (void)!write(STDOUT_FILENO, "noise\n", 6);
    if (is("mismatch"))
        return 803;
    if (is("strange"))
        return 12345;
    return 100;
}
