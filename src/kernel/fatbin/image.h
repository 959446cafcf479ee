/* Images: a fat binary, a cubin or PTX. */
#pragma once

#include <stdbool.h>

#include "kernel/fatbin/bytes.h"

struct hed_why;

/* A fat binary's wrapper, as in section .nvFatBinSegment. */
struct hed_fatbin_wrapper {
    uint32_t magic;           /* HED_FATBIN_WRAPPER_MAGIC */
    uint32_t version;         /* 2: of a linked program */
    const void *data;         /* the fat binary */
    const void *const *parts; /* version 2: those that it was linked from, ending with NULL */
};

enum hed_image_kind { HED_IMAGE_FATBIN, HED_IMAGE_CUBIN, HED_IMAGE_PTX };

struct hed_image {
    enum hed_image_kind kind;
    struct hed_bytes bytes; /* PTX without its NUL */
    /* Of a linked program (-rdc=true): the fat binaries that it was linked from, ending with NULL.
     * They have the PTX that the linked one lacks. NULL if there are none. */
    const void *const *parts;
    bool preserved; /* the program promises to keep the bytes as long as it uses the image */
};

/* An image in memory as CUDA's module functions get it: a pointer without a length. The length
 * comes from the image itself and is trusted, as CUDA trusts it. So this is only for images that
 * the program itself passes to cuModuleLoadData and the like, never for bytes from elsewhere.
 *
 * Decides by the first bytes: a fat binary's wrapper, a fat binary, a cubin, PTX text. HED_EINVAL
 * for NULL, HED_EFORMAT if it is none of these. */
int hed_image_at(const void *p, struct hed_image *out, struct hed_why *why);

/* The image in bytes of known length, as in a file, which need not be trusted. HED_EFORMAT. */
int hed_image_in(struct hed_bytes b, struct hed_image *out, struct hed_why *why);
