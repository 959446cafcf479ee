/* Arrays, mipmapped arrays, texture and surface objects.
 *
 * Where this process executes, an array is plain memory with rows at a pitch; there is no hidden
 * layout. Kernels see textures and surfaces through descriptors, struct hed_texture and struct
 * hed_surface (kernel/engine/texels.h). Other machines represent them in their own way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/handle.h"
#include "driver/parts.h"
#include "kernel/engine.h"

#define HED_LEVEL_ALIGN 512 /* bytes; levels of a mipmap begin at multiples of this */

/* Flags of a texture's description. */
#define HED_TEXTURE_FLAGS                                                      \
    (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

/* The description of a texture that the program gave. */
struct hed_texture_given {
    CUDA_RESOURCE_DESC_v1 resource;
    CUDA_TEXTURE_DESC_v1 texture;
    CUDA_RESOURCE_VIEW_DESC_v1 view; /* zeros if the program gave none */
    bool has_view;
};

struct hed_array {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_device *device;
    CUDA_ARRAY3D_DESCRIPTOR_v2 given;
    struct hed_format format;
    struct hed_texels image; /* `at` is 0 if the memory has no address here */
    uint64_t key;            /* in the index of memory; 0 for a level */
    bool is_level;           /* a level of a mipmap, which owns its memory */
};

struct hed_mipmap {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_device *device;
    CUDA_ARRAY3D_DESCRIPTOR_v2 given;
    uint64_t key; /* in the index of memory, for the memory of all levels */
    unsigned levels;
    uint64_t level[HED_MIPMAP_LEVELS]; /* handles of the levels' arrays */
};

/* The array or mipmap of a handle, with a reference that the caller gives back by hed_object_put();
 * NULL if there is none. */
struct hed_array *hed_array_find(struct hed_driver *d, CUarray handle);
struct hed_mipmap *hed_mipmap_find(struct hed_driver *d, CUmipmappedArray handle);

/* Calls fn for every texture and surface object, in the order of their keys (machine->object_key),
 * until it fails. No lock is held. texture.c */
int hed_texture_each(struct hed_driver *d,
                     int (*fn)(void *arg, const struct hed_allocation *entry, bool surface,
                               const struct hed_texture_given *given),
                     void *arg);

/* What kernels see of a texture (`view` may be NULL) or surface that is described so:
 * INVALID_VALUE, NOT_SUPPORTED. texture.c */
CUresult hed_texture_describe(struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *resource,
                              const CUDA_TEXTURE_DESC_v1 *texture,
                              const CUDA_RESOURCE_VIEW_DESC_v1 *view, struct hed_texture *out);
CUresult hed_surface_describe(struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *resource,
                              struct hed_surface *out);

/* The bytes that an address for a texture is a multiple of. texture.c */
uint64_t hed_texture_align(const struct hed_device *dev);

/* The elements of an API format. False: there is no such format (*known is false), or it has no
 * plain elements because it is block-compressed or planar (*known is true). */
bool hed_format_of(CUarray_format format, unsigned channels, struct hed_format *out, bool *known);

/* The shape that follows from an array's flags and sizes. */
enum hed_shape hed_array_shape(const CUDA_ARRAY3D_DESCRIPTOR_v2 *given);

/* ---- of array.c, for mipmap.c ---------------------------------------------------------------- */

/* Can the device have an array like this? INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_array_check(const struct hed_device *dev, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
                         enum hed_cuda_call id, struct hed_format *format);

/* Lays out an array at an address; returns how many bytes it takes. */
uint64_t hed_array_lay_out(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const struct hed_format *f,
                           uint64_t at, struct hed_texels *out);

/* An array with a handle, but without memory yet. NULL if there is no memory for the object. */
struct hed_array *hed_array_add(struct hed_context *c, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
                                const struct hed_format *f, bool is_level);

/* Removes the handles of an array, or of a mipmap and its levels. */
void hed_array_forget(struct hed_driver *d, uint64_t handle);

/* For machines: records the owner of an entry of the index, for when its context is destroyed. */
void hed_array_own(struct hed_driver *d, uint64_t key, uint64_t handle);

/* For machines whose arrays have no address here. enter charges an array or mipmap to the context's
 * device and puts it into the index under its handle, without an owner yet. The others take it out
 * of the index again, or only give back the charge. */
CUresult hed_array_enter(struct hed_context *c, uint64_t handle, uint64_t bytes);
void hed_array_leave(struct hed_context *c, uint64_t handle);
void hed_array_discharge(struct hed_driver *d, const struct hed_allocation *a);

/* Waits for the work that uses the array, then gives back its memory and removes all handles. `c`
 * is NULL if no context is current. */
CUresult hed_array_give(struct hed_driver *d, struct hed_context *c, uint64_t key);
