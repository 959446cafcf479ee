/* A program that saves itself, with its GPU memory, in the middle of its work.
 *
 *     heddle run --gpu cpu --ckpt on -- ./selfsave      goes to step 6, and leaves self.snap at step 3
 *     heddle snap restore self.snap                     goes on from step 3, as often as you like
 *
 * The command that saves it must not be one of its own processes, because those are saved, too: it is
 * started in the background and belongs to nobody.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (1 << 20)
#define STEPS 6
#define SAVED_AT 3

static int (*cuInit)(unsigned flags);
static int (*cuDevicePrimaryCtxRetain)(void **context, int device);
static int (*cuCtxSetCurrent)(void *context);
static int (*cuMemAlloc)(uint64_t *at, size_t size);
static int (*cuMemsetD8)(uint64_t at, unsigned char byte, size_t count);
static int (*cuMemcpyDtoH)(void *to, uint64_t from, size_t count);

static void
load_cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library)
        exit(1);
    *(void **)&cuInit = dlsym(library, "cuInit");
    *(void **)&cuDevicePrimaryCtxRetain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cuCtxSetCurrent = dlsym(library, "cuCtxSetCurrent");
    *(void **)&cuMemAlloc = dlsym(library, "cuMemAlloc_v2");
    *(void **)&cuMemsetD8 = dlsym(library, "cuMemsetD8_v2");
    *(void **)&cuMemcpyDtoH = dlsym(library, "cuMemcpyDtoH_v2");
}

/* Starts `heddle snap save` for this process, outside of its family, and waits until it is done. */
static int
save_self(const char *file)
{
    char command[512];
    const pid_t child = fork();

    if (child == 0) {
        snprintf(command, sizeof command,
                 "unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT HEDDLE_GPU; "
                 "\"${HEDDLE:-heddle}\" snap save %d --leave-running -o '%s' >snap.log 2>&1 || "
                 "touch '%s.failed'",
                 (int)getppid(), file, file);
        setsid();
        if (fork() == 0)
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    snprintf(command, sizeof command, "%s.failed", file);
    /* The file has its name when it is complete. A program that is restored goes on here. */
    while (access(file, F_OK) != 0) {
        if (access(command, F_OK) == 0)
            return -1;
        usleep(10000);
    }
    return 0;
}

int
main(void)
{
    static unsigned char bytes[SIZE];
    void *context;
    uint64_t at;
    int wrong = 0;

    load_cuda();
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc(&at, SIZE))
        return 1;
    for (int step = 1; step <= STEPS; step++) {
        if (cuMemsetD8(at + (uint64_t)step * 4096, (unsigned char)step, 4096))
            return 1;
        printf("step %d\n", step);
        fflush(stdout);
        if (step == SAVED_AT && save_self("self.snap") != 0)
            return 2;
    }
    if (cuMemcpyDtoH(bytes, at, SIZE))
        return 1;
    for (int step = 1; step <= STEPS; step++)
        wrong += bytes[step * 4096] != step;
    printf("done; %d steps are wrong\n", wrong);
    return wrong != 0;
}
