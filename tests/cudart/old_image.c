/* The image of an old program: PTX in a fat binary (docs/internals/fatbin.md), in a wrapper of
 * version 1. It is registered before main() and unregistered by atexit(); there was no
 * __cudaRegisterFatBinaryEnd(). */
#include <string.h>

#include "old.h"

struct old_fatbin {
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } header;
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t bytes;
        uint32_t compressed, options;
        uint16_t minor, major;
        uint32_t arch, name, name_bytes;
        uint64_t flags, unused, uncompressed;
    } entry;
    char ptx[];
};

static struct {
    int magic, version;
    const void *fatbin;
    void *unused;
} wrapper = {0x466243b1, 1, NULL, NULL};

static void **old_handle;

static void
unregister_old(void)
{
    __cudaUnregisterFatBinary(old_handle);
}

void **
old_register(const char *ptx)
{
    const size_t size = strlen(ptx) + 1;
    const size_t stored = (size + 7) / 8 * 8;
    static _Alignas(8) char room[16384];
    struct old_fatbin *f = (struct old_fatbin *)(void *)room;

    EXPECT(sizeof *f + stored <= sizeof room);
    f->header.magic = 0xba55ed50;
    f->header.version = 1;
    f->header.header_bytes = sizeof f->header;
    f->header.bytes = sizeof f->entry + stored;
    f->entry.kind = 1; /* PTX */
    f->entry.version = 0x101;
    f->entry.header_bytes = sizeof f->entry;
    f->entry.bytes = stored;
    f->entry.major = 4;
    f->entry.minor = 2;
    f->entry.arch = 20;
    f->entry.flags = 0x11; /* 64 bits, Linux */
    memcpy(f->ptx, ptx, size);
    wrapper.fatbin = f;
    old_handle = __cudaRegisterFatBinary(&wrapper);
    EXPECT(old_handle);
    EXPECT(atexit(unregister_old) == 0);
    return old_handle;
}
