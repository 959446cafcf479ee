/* Arrays, mipmapped arrays, texture and surface objects.
 *
 * Where this process executes, an array is plain memory with rows at a pitch: there is no hidden
 * layout. Kernels see textures and surfaces through descriptors, struct hed_texture and struct
 * hed_surface: the 64-bit object that the program passes to a kernel is the address of one.
 * Descriptors are constant while they live. Other machines make of them what they like.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "driver/handle.h"

#define HED_LEVEL_ALIGN 512  /* bytes; levels of a mipmap begin at multiples */
#define HED_MIPMAP_LEVELS 18 /* of the largest array any profile allows, and some */

/* How the bits of an element are to be read. */
enum hed_texel {
    HED_TEXEL_UINT,
    HED_TEXEL_SINT,
    HED_TEXEL_FLOAT, /* 16 or 32 bits */
    HED_TEXEL_UNORM, /* formats that are normalised whatever the read mode */
    HED_TEXEL_SNORM
};

struct hed_format {
    uint8_t texel;    /* enum hed_texel */
    uint8_t bits;     /* of a channel: 8, 16, 32 */
    uint8_t channels; /* 1, 2, 4 */
    uint8_t bytes;    /* of an element */
};

/* One image: level 0 of an array, a level of a mipmapped one, or linear memory. */
struct hed_texels {
    uint64_t at;
    uint64_t pitch;                /* bytes from row to row */
    uint64_t slice;                /* bytes from plane, layer or face to the next */
    uint32_t width, height, depth; /* elements, rows, planes or layers or faces; none is 0 */
};

/* Of what shape coordinates are. */
enum hed_shape {
    HED_SHAPE_LINEAR, /* 1D, of memory: one coordinate, an integer */
    HED_SHAPE_1D,
    HED_SHAPE_2D,
    HED_SHAPE_3D,
    HED_SHAPE_1D_LAYERED,
    HED_SHAPE_2D_LAYERED,
    HED_SHAPE_CUBE, /* six faces in depth */
    HED_SHAPE_CUBE_LAYERED
};

#define HED_TEXTURE_MAGIC 0x54444548u /* "HEDT" */
#define HED_SURFACE_MAGIC 0x53444548u /* "HEDS" */

/* All that a sampler needs. Modes are the API's enums. */
struct hed_texture {
    uint32_t magic;     /* HED_TEXTURE_MAGIC */
    uint8_t shape;      /* enum hed_shape */
    uint8_t address[3]; /* CUaddress_mode of each coordinate */
    struct hed_format format;
    uint8_t filter, mipmap_filter; /* CUfilter_mode */
    bool normalized;               /* coordinates are 0..1 */
    bool as_integer;               /* integers are returned as they are, not as 0..1 or -1..1 */
    bool srgb;
    bool seamless; /* cube maps: filtering goes over edges */
    uint8_t first_level, levels;
    uint32_t first_layer, layers; /* of the view; layers is 1 where there are none */
    uint32_t anisotropy;
    float bias, level_min, level_max;
    float border[4];
    struct hed_texels level[HED_MIPMAP_LEVELS]; /* levels of them, from first_level on */
};

struct hed_surface {
    uint32_t magic; /* HED_SURFACE_MAGIC */
    uint8_t shape;
    struct hed_format format;
    struct hed_texels image;
};

/* What the program said of a texture. */
struct hed_texture_given {
    CUDA_RESOURCE_DESC_v1 resource;
    CUDA_TEXTURE_DESC_v1 texture;
    CUDA_RESOURCE_VIEW_DESC_v1 view; /* zeros: none was given */
    bool has_view;
};

struct hed_array {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_device *device;
    CUDA_ARRAY3D_DESCRIPTOR_v2 given;
    struct hed_format format;
    struct hed_texels image; /* at is 0 where the memory has no address here */
    uint64_t key;            /* in the index of memory; of a level: 0 */
    bool is_level;           /* of a mipmap, whose memory it is */
};

struct hed_mipmap {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_device *device;
    CUDA_ARRAY3D_DESCRIPTOR_v2 given;
    uint64_t key; /* of the memory of all levels, in the index of memory */
    unsigned levels;
    uint64_t level[HED_MIPMAP_LEVELS]; /* handles of arrays */
};

/* The array or mipmapped array of a handle, to be put back with hed_object_put(&a->object); NULL:
 * there is none. */
struct hed_array *hed_array_find(struct hed_driver *d, CUarray handle);
struct hed_mipmap *hed_mipmap_find(struct hed_driver *d, CUmipmappedArray handle);

/* What elements of an API format are; false: no such format, or one that has no plain elements
 * (block-compressed, planar), told apart by *known. */
bool hed_format_of(CUarray_format format, unsigned channels, struct hed_format *out, bool *known);

/* The shape an array's flags and sizes make. */
enum hed_shape hed_array_shape(const CUDA_ARRAY3D_DESCRIPTOR_v2 *given);

/* ---- of array.c, for mipmap.c ---------------------------------------------------------------- */

/* May an array like this be made on the device? INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_array_check(const struct hed_device *dev, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
                         enum hed_cuda_call id, struct hed_format *format);

/* The image of an array at an address; returns the bytes it takes. */
uint64_t hed_array_lay_out(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const struct hed_format *f,
                           uint64_t at, struct hed_texels *out);

/* An array with a name, but without memory yet; NULL: there is none for the object. */
struct hed_array *hed_array_add(struct hed_context *c, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
                                const struct hed_format *f, bool is_level);

/* Takes the names of an array, or of a mipmap and its levels, away. */
void hed_array_forget(struct hed_driver *d, uint64_t handle);

/* For machines. Says whose an entry of the index is, for when its context dies. */
void hed_array_own(struct hed_driver *d, uint64_t key, uint64_t handle);

/* For machines whose arrays have no address here: charges an array or mipmap to the context's
 * device and puts it into the index under its handle, without an owner yet; takes it out again, or
 * only the charge back. */
CUresult hed_array_enter(struct hed_context *c, uint64_t handle, uint64_t bytes);
void hed_array_leave(struct hed_context *c, uint64_t handle);
void hed_array_discharge(struct hed_driver *d, const struct hed_allocation *a);

/* Waits for what uses it, and gives the memory back with all names. */
CUresult hed_array_give(struct hed_context *c, uint64_t key);
