/* Descriptors: what kernels see of textures and surfaces. The 64-bit object that a program passes
 * to a kernel is the address of one, or a number under which the job knows one. Descriptors are
 * constant while they live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"

#define HED_MIPMAP_LEVELS 18 /* more than the largest array of any profile needs */

/* How the bits of an element are read. */
enum hed_texel {
    HED_TEXEL_UINT,
    HED_TEXEL_SINT,
    HED_TEXEL_FLOAT, /* 16 or 32 bits */
    HED_TEXEL_UNORM, /* normalised whatever the read mode */
    HED_TEXEL_SNORM
};

struct hed_format {
    uint8_t texel;    /* enum hed_texel */
    uint8_t bits;     /* per channel: 8, 16 or 32 */
    uint8_t channels; /* 1, 2 or 4 */
    uint8_t bytes;    /* per element */
};

/* One image: level 0 of an array, one level of a mipmap, or linear memory. */
struct hed_texels {
    uint64_t at;
    uint64_t pitch;                /* bytes from one row to the next */
    uint64_t slice;                /* bytes from one plane, layer or face to the next */
    uint32_t width, height, depth; /* elements; rows; planes, layers or faces. None is 0 */
};

/* The shape of the coordinates. */
enum hed_shape {
    HED_SHAPE_LINEAR, /* 1D, linear memory: one integer coordinate */
    HED_SHAPE_1D,
    HED_SHAPE_2D,
    HED_SHAPE_3D,
    HED_SHAPE_1D_LAYERED,
    HED_SHAPE_2D_LAYERED,
    HED_SHAPE_CUBE, /* the six faces are in depth */
    HED_SHAPE_CUBE_LAYERED
};

#define HED_TEXTURE_MAGIC 0x54444548u /* "HEDT" */
#define HED_SURFACE_MAGIC 0x53444548u /* "HEDS" */
#define HED_UNBOUND_MAGIC 0x55444548u /* "HEDU": a reference that is bound to nothing */

/* Everything that a sampler needs. Modes are the API's enums. */
struct hed_texture {
    uint32_t magic;     /* HED_TEXTURE_MAGIC */
    uint8_t shape;      /* enum hed_shape */
    uint8_t address[3]; /* CUaddress_mode of each coordinate */
    struct hed_format format;
    uint8_t filter, mipmap_filter; /* CUfilter_mode */
    bool normalized;               /* coordinates range from 0 to 1 */
    bool as_integer;               /* integers are returned unchanged, not as 0..1 or -1..1 */
    bool srgb;
    bool seamless; /* cube maps: filtering crosses edges */
    uint8_t first_level, levels;
    uint32_t first_layer, layers; /* of the view; layers is 1 if there are none */
    uint32_t anisotropy;
    float bias, level_min, level_max;
    float border[4];
    struct hed_texels level[HED_MIPMAP_LEVELS]; /* `levels` of them, beginning with first_level */
};

struct hed_surface {
    uint32_t magic; /* HED_SURFACE_MAGIC */
    uint8_t shape;
    struct hed_format format;
    struct hed_texels image;
};

/* A reference by name (driver/module/reference.c) is a variable of this form. */
union hed_reference_room {
    uint32_t magic;
    struct hed_texture texture;
    struct hed_surface surface;
};
