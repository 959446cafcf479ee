/* A fat binary around a PTX text, as compilers put one into programs (docs/internals/fatbin.md). */
#pragma once

#include <stddef.h>
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
    uint32_t options_text, options_bytes; /* NVIDIA's driver does not ask whether there are any */
    uint64_t no_options;
};

/* What __cudaRegisterFatBinary() takes, for PTX of a version and for an architecture. It is never
 * freed: the runtime may look at it until the end. */
static inline const struct image_wrapper *
image_wrap_as(const char *ptx, unsigned major, unsigned minor, unsigned arch)
{
    const uint64_t stored = (strlen(ptx) + 8) / 8 * 8;
    const struct image_entry entry = {.kind = 1, /* PTX */
                                      .version = 0x101,
                                      .header_bytes = sizeof entry,
                                      .bytes = stored,
                                      .options = offsetof(struct image_entry, options_text),
                                      .options_text = offsetof(struct image_entry, no_options),
                                      .minor = (uint16_t)minor,
                                      .major = (uint16_t)major,
                                      .arch = arch,
                                      .flags = 0x11 /* 64 bits, Linux */};
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

static inline const struct image_wrapper *
image_wrap(const char *ptx)
{
    return image_wrap_as(ptx, 7, 0, 50);
}
