/* A fat binary around a PTX text, as compilers put one into programs (docs/internals/fatbin.md),
 * and the functions of a runtime with which their startup code registers it. Programs that include
 * this are linked with a libcudart. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct image_wrapper {
    uint32_t magic, version;
    const void *fatbin;
    const void *unused;
};

struct image_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

struct image_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed, options;
    uint16_t minor, major;
    uint32_t arch, name, name_bytes;
    uint64_t flags, unused, uncompressed;
};

void **__cudaRegisterFatBinary(const void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const void *stub, const char *unused, const char *name,
                            int thread_limit, void *tid, void *bid, void *block, void *grid,
                            int *warp);
void __cudaRegisterVar(void **handle, void *shadow, const char *unused, const char *name, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, const char *unused, const char *name,
                              int ext, size_t size, int constant, int global);

/* What __cudaRegisterFatBinary() takes. It is never freed: the runtime may look at it until the
 * end. */
static inline const struct image_wrapper *
image_wrap(const char *ptx)
{
    const uint64_t stored = (strlen(ptx) + 8) / 8 * 8;
    const struct image_entry entry = {.kind = 1,
                                      .version = 0x101,
                                      .header_bytes = sizeof entry,
                                      .bytes = stored,
                                      .major = 7,
                                      .arch = 50,
                                      .flags = 0x11};
    const struct image_header header = {0xba55ed50, 1, sizeof header, sizeof entry + stored};
    struct image_wrapper *w = calloc(1, sizeof *w + sizeof header + sizeof entry + stored);
    char *at = (char *)(w + 1);

    if (!w)
        abort();
    *w = (struct image_wrapper){0x466243b1, 1, at, NULL};
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, &entry, sizeof entry);
    memcpy(at + sizeof header + sizeof entry, ptx, strlen(ptx));
    return w;
}

/* Registers a kernel under the address of its stub, which is never called. */
static inline void
image_kernel(void **handle, const void *stub, const char *name)
{
    __cudaRegisterFunction(handle, stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline void
image_variable(void **handle, void *shadow, const char *name, size_t size)
{
    __cudaRegisterVar(handle, shadow, name, name, 0, size, 0, 0);
}
