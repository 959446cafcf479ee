/* A table of runtime calls, good and bad, whose answers are compared between runtimes.
 *
 *     cudart_table LIBCUDART AREA
 *
 * loads a runtime (any edition, NVIDIA's or ours) and makes the calls of one area. Each call prints
 * one line: its name, what is special about it, its result and the thread's last error after it.
 * Outputs that are the same in every run follow in lines of their own. The last error is cleared
 * after each call unless an area says otherwise. Calls that crash NVIDIA's runtime are left out.
 *
 * The types here are the runtime's, as far as the table needs them, under names of our own: the
 * program is built without a CUDA toolkit, and one program serves editions whose structs differ. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Results of our own, beside the runtime's. */
#define TABLE_ABSENT (-1)

/* Calls a function of the runtime, if it has it, and prints the line. */
#define TRY(label, name, types, args) \
    table_result(#name, label,        \
                 table_find(#name) ? ((int(*) types)table_function())args : TABLE_ABSENT)

/* The same without a line: for what only prepares the calls to come. 0 if it worked. */
#define QUIET(name, types, args) \
    (table_find(#name) ? table_quiet(((int(*) types)table_function())args) : TABLE_ABSENT)

/* A call that crashes NVIDIA's runtimes before this edition. */
#define TRY_SINCE(edition, ...) (table_edition() < (edition) ? 0 : TRY(__VA_ARGS__))

/* Kinds of copies. */
enum { TO_HOST_FROM_HOST, TO_DEVICE, TO_HOST, ON_DEVICE, DEFAULT_KIND, BAD_KIND = 9 };

struct table_dim3 {
    unsigned x, y, z;
};

struct table_extent {
    size_t width, height, depth;
};

struct table_position {
    size_t x, y, z;
};

struct table_pitched {
    void *ptr;
    size_t pitch, xsize, ysize;
};

struct table_channel {
    int x, y, z, w, kind;
};

struct table_location {
    int type, id;
};

struct table_copy3d {
    void *src_array;
    struct table_position src_pos;
    struct table_pitched src;
    void *dst_array;
    struct table_position dst_pos;
    struct table_pitched dst;
    struct table_extent extent;
    int kind;
};

struct table_peer3d {
    void *src_array;
    struct table_position src_pos;
    struct table_pitched src;
    int src_device;
    void *dst_array;
    struct table_position dst_pos;
    struct table_pitched dst;
    int dst_device;
    struct table_extent extent;
};

/* Of edition 11 and later. */
struct table_pointer {
    int type, device;
    void *device_pointer, *host_pointer;
    long reserved[8];
};

/* What is behind `preferred` came with edition 12. */
struct table_function_info {
    size_t shared, constant, local;
    int max_threads, registers, ptx, binary, cache_mode, max_dynamic, preferred;
    int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy,
        non_portable;
    int reserved[32];
};

struct table_resource {
    int type;
    union {
        void *array;
        struct {
            void *ptr;
            struct table_channel channel;
            size_t bytes;
        } linear;
        struct {
            void *ptr;
            struct table_channel channel;
            size_t width, height, pitch;
        } pitch2d;
        long reserved[16];
    } u;
    unsigned flags; /* since CUDA 12 */
};

struct table_texture {
    int address[3], filter, read, srgb;
    float border[4];
    int normalized;
    unsigned anisotropy;
    int mipmap_filter;
    float bias, min_level, max_level;
    int no_trilinear, seamless;
    int reserved[16];
};

struct table_pool_props {
    int alloc_type, handle_types;
    struct table_location location;
    void *security;
    unsigned char reserved[64];
};

struct table_attribute {
    int id, pad;
    union {
        int integer;
        struct table_dim3 dim;
        char bytes[64];
    } value;
};

struct table_launch {
    struct table_dim3 grid, block;
    size_t shared;
    void *stream;
    struct table_attribute *attributes;
    unsigned count;
};

struct table_kernel_node {
    void *function;
    struct table_dim3 grid, block;
    unsigned shared;
    void **params, **extra;
};

struct table_memset_node {
    void *dst;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};

struct table_host_node {
    void (*fn)(void *);
    void *data;
};

/* cudaGraphNodeParams; `u` begins at byte 16. */
struct table_node {
    int type, reserved[3];
    union {
        struct {
            struct table_kernel_node node;
            void *kern, *ctx;
        } kernel;
        struct {
            int flags, reserved[3];
            struct table_copy3d copy;
        } copy;
        struct {
            struct table_memset_node node;
            void *ctx;
        } set;
        struct {
            uint64_t handle;
            int type;
            unsigned size;
            void **graphs, *ctx;
        } conditional;
        void *pointer;
        long long padding[29];
    } u;
    long long reserved2;
};

/* A function of the runtime by its name, which table_function() gives; the edition (10 to 13). */
bool table_find(const char *name);
void *table_function(void);
int table_edition(void);

/* Prints the line of a call; table_keep(true) leaves the last error as it is from now on. */
int table_result(const char *name, const char *label, int result);
int table_quiet(int result);
void table_keep(bool keep);
/* Is it NVIDIA's driver (HED_TABLE_REAL)? It does not survive everything. */
bool table_is_real(void);
#define TRY_SOFT(...) (table_is_real() ? 0 : TRY(__VA_ARGS__))
/* An address that is no kernel. Runtimes give it to the driver, and NVIDIA's may not survive that,
 * so it gets NULL. */
void *table_stranger(void *address);
/* A line about the outputs of the call before it. */
void table_show(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The runtime's name of an error. */
const char *table_error(int error);

/* The image of table_image.c, registered as a compiler's code would do it: these addresses stand
 * for its kernels and variables. */
extern char table_add, table_store, table_bounded, table_shared, table_missing;
extern char table_dev[64], table_const[64], table_lost[64];
extern char *table_managed;
extern const char table_ptx[];
void table_register(void);
void table_unregister(void);
/* A fat binary with the PTX, and the wrapper that registration gets. */
const void *table_fatbin(void);

/* The areas; each prints its calls. */
void table_devices(void);
void table_lazy(void);
void table_errors(void);
void table_faults(void);
void table_streams(void);
void table_events(void);
void table_memory(void);
void table_host(void);
void table_copies(void);
void table_symbols(void);
void table_arrays(void);
void table_edges(void);
void table_textures(void);
void table_functions(void);
void table_launches(void);
void table_libraries(void);
void table_graphs(void);
void table_nodes(void);
void table_execs(void);
void table_captures(void);
void table_pools(void);
void table_others(void);
void table_registration(void);
void table_firsts(void);
void table_contexts(void);
void table_threads(void);
void table_newcomers(void);
void table_forks(void);
void table_ends(void);
void table_nothing(void);
void table_batches(void);
void table_variants(void);
void table_outside(void);
void table_random(void);
