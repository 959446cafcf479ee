/* Preloaded into a server: its workers take long to free pages of files, as on a busy machine. At
 * any time until they are done the pages may become zeros, so nobody may be using them yet. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>

#define TIMES 1000
#define NAP_NS 100000

__attribute__((visibility("default"))) int
fallocate(int fd, int mode, off_t offset, off_t size)
{
    int (*real)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, "fallocate");
    int r = real(fd, mode, offset, size);

    for (int i = 0; i < TIMES && r == 0 && mode & FALLOC_FL_PUNCH_HOLE; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        r = real(fd, mode, offset, size);
    }
    return r;
}
