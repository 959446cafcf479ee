/* Children of processes that have used CUDA: there, the driver answers no call any more, but the
 * runtime may know something. */
#include "table.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct table_dim3 single = {1, 1, 1};

static void
wait_for(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    if (status)
        printf("the child ended with status 0x%x\n", status);
}

static void
ask_versions_and_devices(const char *label)
{
    char properties[2048] = "";
    char bus[32];
    int value = 77;

    TRY(label, cudaGetDeviceCount, (int *), (&value));
    table_show("%d", value);
    value = 77;
    TRY(label, cudaDriverGetVersion, (int *), (&value));
    table_show("%s", value == 77 ? "untouched" : value ? "a version" : "none");
    TRY(label, cudaRuntimeGetVersion, (int *), (&value));
    TRY(label, cudaGetDeviceProperties, (void *, int), (properties, 0));
    table_show("%s", properties[0] ? "a name" : "no name");
    TRY(label, cudaGetDeviceProperties_v2, (void *, int), (properties, 1));
    TRY("properties of no device", cudaGetDeviceProperties, (void *, int), (properties, 7));
    TRY(label, cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 0));
    TRY(label, cudaDeviceGetPCIBusId, (char *, int, int), (bus, sizeof bus, 0));
    TRY(label, cudaDeviceGetByPCIBusId, (int *, const char *), (&value, "0000:01:00.0"));
    TRY(label, cudaDeviceCanAccessPeer, (int *, int, int), (&value, 0, 1));
    TRY(label, cudaDeviceGetP2PAttribute, (int *, int, int, int), (&value, 1, 0, 1));
    memset(properties, 0, sizeof properties);
    TRY(label, cudaChooseDevice, (int *, const void *), (&value, properties));
    TRY(label, cudaDeviceGetDefaultMemPool, (void **, int), (&(void *){NULL}, 0));
}

static void
use_contexts(const char *label)
{
    struct table_function_info info;
    struct table_pointer pointer;
    void *p = NULL, *stream = NULL;
    unsigned flags = 77;
    size_t size;
    int value;
    char byte;

    TRY(label, cudaGetDevice, (int *), (&value));
    TRY(label, cudaGetDeviceFlags, (unsigned *), (&flags));
    TRY(label, cudaMalloc, (void **, size_t), (&p, 64));
    TRY(label, cudaFree, (void *), (NULL));
    TRY(label, cudaHostAlloc, (void **, size_t, unsigned), (&p, 64, 0));
    TRY(label, cudaFreeHost, (void *), (NULL));
    TRY(label, cudaMemGetInfo, (size_t *, size_t *), (&size, &size));
    TRY(label, cudaMemcpy, (void *, const void *, size_t, int), (&byte, &byte, 1, 0));
    TRY(label, cudaMemset, (void *, int, size_t), (&byte, 0, 1));
    TRY(label, cudaPointerGetAttributes, (struct table_pointer *, const void *), (&pointer, &byte));
    TRY(label, cudaStreamCreate, (void **), (&stream));
    TRY(label, cudaStreamSynchronize, (void *), (NULL));
    TRY(label, cudaStreamQuery, (void *), (NULL));
    TRY(label, cudaEventCreate, (void **), (&stream));
    TRY(label, cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_shared, single, single, NULL, 0, NULL));
    TRY(label, cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_shared));
    TRY(label, cudaGetSymbolAddress, (void **, const void *), (&p, table_dev));
    TRY(label, cudaGetSymbolSize, (size_t *, const void *), (&size, table_dev));
    TRY(label, cudaGraphCreate, (void **, unsigned), (&p, 0));
    TRY(label, cudaDeviceGetLimit, (size_t *, int), (&size, 0));
    TRY(label, cudaDeviceSynchronize, (void), ());
    TRY(label, cudaProfilerStart, (void), ());
    TRY(label, cudaProfilerStop, (void), ());
    TRY(label, cudaSetDeviceFlags, (unsigned), (0));
    TRY(label, cudaSetDevice, (int), (0));
    TRY("no device", cudaSetDevice, (int), (7));
    TRY(label, cudaSetValidDevices, (int *, int), (&(int){0}, 1));
    TRY(label, cudaDeviceReset, (void), ());
}

/* What a parent has done, and its children are called. */
struct table_parent {
    const char *child;
    bool counts, allocates, asks;
};

static const struct table_parent parents[] = {
    {"after a count", true, false, false},
    {"after an allocation", false, true, false},
    {"after all", true, true, true},
};

static void
be_parent(struct table_parent parent)
{
    char properties[2048];
    void *p = NULL;
    int value;
    pid_t child;

    table_register();
    if (parent.counts)
        QUIET(cudaGetDeviceCount, (int *), (&value));
    if (parent.allocates)
        QUIET(cudaMalloc, (void **, size_t), (&p, 64));
    if (parent.asks) {
        QUIET(cudaGetDeviceProperties, (void *, int), (properties, 0));
        QUIET(cudaDriverGetVersion, (int *), (&value));
        QUIET(cudaRuntimeGetVersion, (int *), (&value));
        QUIET(cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 0));
        QUIET(cudaLaunchKernel,
              (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
              (&table_shared, single, single, NULL, 0, NULL));
        QUIET(cudaDeviceSynchronize, (void), ());
    }
    child = fork();
    if (child == 0) {
        ask_versions_and_devices(parent.child);
        use_contexts(parent.child);
        fflush(stdout);
        _exit(0);
    }
    wait_for(child);
    TRY("a parent goes on", cudaMalloc, (void **, size_t), (&p, 64));
    fflush(stdout);
    _exit(0);
}

void
table_forks(void)
{
    int count = 77;
    void *p = NULL;
    pid_t child;

    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        fflush(stdout);
        child = fork();
        if (child == 0)
            be_parent(parents[i]);
        wait_for(child);
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        TRY("in a child, before anything", cudaMalloc, (void **, size_t), (&p, 64));
        fflush(stdout);
        _exit(0);
    }
    wait_for(child);
    TRY("in the parent", cudaMalloc, (void **, size_t), (&p, 64));
    table_keep(true);
    TRY("a failure in the parent", cudaSetDevice, (int), (7));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        TRY("in a child", cudaPeekAtLastError, (void), ());
        table_keep(false);
        TRY("in a child", cudaGetDeviceCount, (int *), (&count));
        TRY("in a child", cudaGetDevice, (int *), (&count));
        TRY("in a child", cudaMalloc, (void **, size_t), (&p, 64));
        TRY("in a child", cudaDeviceSynchronize, (void), ());
        TRY("in a child", cudaSetDevice, (int), (0));
        TRY("in a child", cudaDeviceReset, (void), ());
        TRY("in a child, after a reset", cudaMalloc, (void **, size_t), (&p, 64));
        fflush(stdout);
        _exit(0);
    }
    wait_for(child);
    table_keep(false);
    TRY("in the parent, after the child", cudaMalloc, (void **, size_t), (&p, 64));
}
