/* Copies between pointers, fills, and what pointers are: see copies.h. */
#include "copies.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaStreamCreate(cudaStream_t *s);
cudaError_t cudaMallocHost(void **p, size_t size);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags);
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(cudaPitchedPtr *p, cudaExtent extent);
cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t s);
cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                                 cudaStream_t s);
cudaError_t cudaMemcpy2D(void *to, size_t tpitch, const void *from, size_t fpitch, size_t width,
                         size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t tpitch, const void *from, size_t fpitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t s);
cudaError_t cudaMemcpyPeer(void *to, int tdevice, const void *from, int fdevice, size_t size);
cudaError_t cudaMemcpyPeerAsync(void *to, int tdevice, const void *from, int fdevice, size_t size,
                                cudaStream_t s);
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *p);
cudaError_t cudaMemset(void *p, int value, size_t size);
cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t s);
cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t s);
cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent extent);
cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent extent, cudaStream_t s);
cudaError_t cudaPointerGetAttributes(void *attributes, const void *p);
#if EDITION >= 11
cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t s);
cudaError_t cudaFreeAsync(void *p, cudaStream_t s);
#endif
#if EDITION >= 13
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes,
                                 size_t count, cudaMemcpyAttributes *attributes, size_t *which,
                                 size_t attribute_count, cudaStream_t s);
#endif

struct copies_places copies;

static _Atomic int failures;
static char doing[256]; /* what is being tested, for messages */

void
expect(bool holds, const char *what)
{
    if (holds)
        return;
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "failed: %s: %s\n", doing, what);
}

void
expect_ok(cudaError_t r, const char *what)
{
    char text[128];

    (void)snprintf(text, sizeof text, "%s returns %d", what, (int)r);
    expect(r == cudaSuccess, text);
}

static const char *const place_names[PLACES] = {"pageable", "pinned", "device", "managed"};

static void
now_testing(const char *what, enum place_kind to, enum place_kind from)
{
    (void)snprintf(doing, sizeof doing, "%s, %s to %s", what, place_names[from], place_names[to]);
}

static bool
is_on_host(enum place_kind k)
{
    return k == PAGEABLE || k == PINNED;
}

cudaMemcpyKind
copies_kind(enum place_kind to, enum place_kind from)
{
    if (is_on_host(from))
        return is_on_host(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return is_on_host(to) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

unsigned char
copies_byte(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static void
make_places(void)
{
    expect_ok(cudaStreamCreate(&copies.stream), "cudaStreamCreate");
    for (int i = 0; i < 2; i++) {
        unsigned char **p = i ? copies.to : copies.from;

        p[PAGEABLE] = calloc(1, ROOM);
        expect_ok(cudaMallocHost((void **)&p[PINNED], ROOM), "cudaMallocHost");
        expect_ok(cudaMalloc((void **)&p[DEVICE], ROOM), "cudaMalloc");
        expect_ok(cudaMallocManaged((void **)&p[MANAGED], ROOM, 1), "cudaMallocManaged");
        if (!p[PAGEABLE] || !p[PINNED] || !p[DEVICE] || !p[MANAGED])
            exit(1);
        for (int k = 0; k < PLACES; k++)
            copies_fill(p[k]);
    }
}

void
copies_fill(unsigned char *place)
{
    static unsigned char bytes[ROOM];

    for (size_t i = 0; i < ROOM; i++)
        bytes[i] = copies_byte(i);
    expect_ok(cudaMemcpy(place, bytes, ROOM, cudaMemcpyDefault), "fill");
}

void
copies_clear(unsigned char *place)
{
    static unsigned char bytes[ROOM];

    memset(bytes, 0xee, ROOM);
    expect_ok(cudaMemcpy(place, bytes, ROOM, cudaMemcpyDefault), "clear");
}

const unsigned char *
copies_look(const unsigned char *place)
{
    static unsigned char bytes[ROOM];

    expect_ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    memset(bytes, 0x55, ROOM);
    expect_ok(cudaMemcpy(bytes, place, ROOM, cudaMemcpyDefault), "look");
    return bytes;
}

/* ---- boxes of bytes in places ---------------------------------------------------------------- */

/* Rows of `pitch` bytes, `rows` of them to a layer. */
struct shape {
    size_t pitch, rows;
};

static size_t
shape_index(const struct shape *s, size_t x, size_t y, size_t z)
{
    return (z * s->rows + y) * s->pitch + x;
}

/* Whether a box of `to` has what the box of the filled place had, and all else is untouched. */
static bool
box_was_copied(const unsigned char *to, const struct shape *ts, const cudaPos *tpos,
               const struct shape *fs, const cudaPos *fpos, const cudaExtent *e)
{
    static unsigned char want[ROOM];

    memset(want, 0xee, ROOM);
    for (size_t z = 0; z < e->depth; z++)
        for (size_t y = 0; y < e->height; y++)
            for (size_t x = 0; x < e->width; x++)
                want[shape_index(ts, tpos->x + x, tpos->y + y, tpos->z + z)] =
                    copies_byte(shape_index(fs, fpos->x + x, fpos->y + y, fpos->z + z));
    return memcmp(copies_look(to), want, ROOM) == 0;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void
copy_bytes(enum place_kind to, enum place_kind from, cudaMemcpyKind kind)
{
    const struct shape line = {ROOM, 1};
    const cudaPos origin = {0, 0, 0}, shifted = {5, 0, 0};
    const cudaExtent extent = {1000, 1, 1};
    unsigned char *t = copies.to[to];

    for (int how = 0; how < 4; how++) {
        copies_clear(t);
        if (how == 0)
            expect_ok(cudaMemcpy(t + 5, copies.from[from], 1000, kind), "cudaMemcpy");
        else if (how == 1)
            expect_ok(cudaMemcpyAsync(t + 5, copies.from[from], 1000, kind, copies.stream),
                      "cudaMemcpyAsync");
        else if (how == 2)
            expect_ok(cudaMemcpy_ptds(t + 5, copies.from[from], 1000, kind), "cudaMemcpy_ptds");
        else
            expect_ok(cudaMemcpyAsync_ptsz(t + 5, copies.from[from], 1000, kind, NULL),
                      "cudaMemcpyAsync_ptsz");
        expect(box_was_copied(t, &line, &shifted, &line, &origin, &extent), "contents");
    }
}

static void
copies_of_bytes(void)
{
    for (int to = 0; to < PLACES; to++)
        for (int from = 0; from < PLACES; from++) {
            now_testing("bytes", to, from);
            copy_bytes(to, from, copies_kind(to, from));
            now_testing("bytes by default", to, from);
            copy_bytes(to, from, cudaMemcpyDefault);
        }
#if EDITION >= 13
    {
        void *to[2] = {copies.to[DEVICE], copies.to[DEVICE] + 100};
        const void *from[2] = {copies.from[DEVICE], copies.from[DEVICE] + 100};
        const size_t sizes[2] = {100, 200};
        size_t which = 0;
        cudaMemcpyAttributes a = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
        const struct shape line = {ROOM, 1};
        const cudaPos origin = {0, 0, 0};
        const cudaExtent extent = {300, 1, 1};

        now_testing("batch", DEVICE, DEVICE);
        copies_clear(copies.to[DEVICE]);
        expect_ok(cudaMemcpyBatchAsync(to, from, sizes, 2, &a, &which, 1, copies.stream),
                  "cudaMemcpyBatchAsync");
        expect(box_was_copied(copies.to[DEVICE], &line, &origin, &line, &origin, &extent),
               "contents");
    }
#endif
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void
copies_of_rows(void)
{
    const struct shape ts = {96, 9}, fs = {80, 8};
    const cudaPos origin = {0, 0, 0};
    const cudaExtent extent = {50, 7, 1};

    for (int to = 0; to < PLACES; to++)
        for (int from = 0; from < PLACES; from++)
            for (int how = 0; how < 4; how++) {
                const cudaMemcpyKind kind = how < 2 ? copies_kind(to, from) : cudaMemcpyDefault;

                now_testing(how < 2 ? "rows" : "rows by default", to, from);
                copies_clear(copies.to[to]);
                if (how % 2)
                    expect_ok(cudaMemcpy2DAsync(copies.to[to], ts.pitch, copies.from[from],
                                                fs.pitch, extent.width, extent.height, kind,
                                                copies.stream),
                              "cudaMemcpy2DAsync");
                else
                    expect_ok(cudaMemcpy2D(copies.to[to], ts.pitch, copies.from[from], fs.pitch,
                                           extent.width, extent.height, kind),
                              "cudaMemcpy2D");
                expect(box_was_copied(copies.to[to], &ts, &origin, &fs, &origin, &extent),
                       "contents");
            }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static void
copies_of_boxes(void)
{
    const struct shape ts = {48, 10}, fs = {40, 9};
    cudaMemcpy3DParms p = {
        .srcPos = {3, 1, 2},
        .dstPos = {4, 2, 1},
        .extent = {30, 6, 5},
    };

    for (int to = 0; to < PLACES; to++)
        for (int from = 0; from < PLACES; from++)
            for (int how = 0; how < 4; how++) {
                now_testing(how < 2 ? "boxes" : "boxes by default", to, from);
                p.srcPtr = (cudaPitchedPtr){copies.from[from], fs.pitch, 40, fs.rows};
                p.dstPtr = (cudaPitchedPtr){copies.to[to], ts.pitch, 48, ts.rows};
                p.kind = how < 2 ? copies_kind(to, from) : cudaMemcpyDefault;
                copies_clear(copies.to[to]);
                if (how % 2)
                    expect_ok(cudaMemcpy3DAsync(&p, copies.stream), "cudaMemcpy3DAsync");
                else
                    expect_ok(cudaMemcpy3D(&p), "cudaMemcpy3D");
                expect(box_was_copied(copies.to[to], &ts, &p.dstPos, &fs, &p.srcPos, &p.extent),
                       "contents");
            }
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
copies_of_peers(void)
{
    const struct shape shape = {64, 8};
    const cudaPos origin = {0, 0, 0};
    const cudaExtent line = {512, 1, 1};
    cudaMemcpy3DPeerParms p = {.extent = {20, 5, 3}, .dstPos = {1, 2, 3}};
    unsigned char *other = NULL;
    int count = 0;

    (void)snprintf(doing, sizeof doing, "peers");
    expect_ok(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (count < 2) {
        printf("there is one device only\n");
        exit(77);
    }
    expect_ok(cudaSetDevice(1), "cudaSetDevice");
    expect_ok(cudaMalloc((void **)&other, ROOM), "cudaMalloc");
    copies_clear(other);
    expect_ok(cudaMemcpyPeer(other, 1, copies.from[DEVICE], 0, 512), "cudaMemcpyPeer");
    expect(box_was_copied(other, &(struct shape){ROOM, 1}, &origin, &(struct shape){ROOM, 1},
                          &origin, &line),
           "contents of a copy");
    copies_clear(other);
    p.srcPtr = (cudaPitchedPtr){copies.from[DEVICE], shape.pitch, 64, shape.rows};
    p.dstPtr = (cudaPitchedPtr){other, shape.pitch, 64, shape.rows};
    p.dstDevice = 1;
    expect_ok(cudaMemcpy3DPeer(&p), "cudaMemcpy3DPeer");
    expect(box_was_copied(other, &shape, &p.dstPos, &shape, &p.srcPos, &p.extent),
           "contents of a box");
    copies_fill(other);
    expect_ok(cudaSetDevice(0), "cudaSetDevice");
    copies_clear(copies.to[DEVICE]);
    expect_ok(cudaMemcpyPeerAsync(copies.to[DEVICE], 0, other, 1, 512, copies.stream),
              "cudaMemcpyPeerAsync");
    expect(box_was_copied(copies.to[DEVICE], &(struct shape){ROOM, 1}, &origin,
                          &(struct shape){ROOM, 1}, &origin, &line),
           "contents of a copy back");
    expect_ok(cudaFree(other), "cudaFree");
}

/* ---- fills ----------------------------------------------------------------------------------- */

static bool
box_was_filled(const unsigned char *to, const struct shape *s, unsigned char value,
               const cudaExtent *e)
{
    static unsigned char want[ROOM];

    memset(want, 0xee, ROOM);
    for (size_t z = 0; z < e->depth; z++)
        for (size_t y = 0; y < e->height; y++)
            memset(&want[shape_index(s, 0, y, z)], value, e->width);
    return memcmp(copies_look(to), want, ROOM) == 0;
}

static void
fills(void)
{
    /* Boxes that are one run of bytes, one sheet of rows, or neither. */
    static const cudaExtent extents[] = {
        {64, 8, 3}, {40, 8, 3}, {40, 5, 3}, {64, 5, 3}, {70, 1, 1}};
    static const enum place_kind kinds[] = {PINNED, DEVICE, MANAGED};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int async = 0; async < 2; async++) {
            unsigned char *t = copies.to[kinds[k]];
            const struct shape line = {ROOM, 1}, rows = {100, 1}, box = {64, 8};

            (void)snprintf(doing, sizeof doing, "fill of %s", place_names[kinds[k]]);
            copies_clear(t);
            expect_ok(async ? cudaMemsetAsync(t, 0x1ab, 777, copies.stream)
                            : cudaMemset(t, 0x1ab, 777),
                      "cudaMemset");
            expect(box_was_filled(t, &line, 0xab, &(cudaExtent){777, 1, 1}), "bytes");
            copies_clear(t);
            expect_ok(async ? cudaMemset2DAsync(t, 100, 3, 33, 9, copies.stream)
                            : cudaMemset2D(t, 100, 3, 33, 9),
                      "cudaMemset2D");
            expect(box_was_filled(t, &rows, 3, &(cudaExtent){33, 1, 9}), "rows");
            for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
                const cudaPitchedPtr p = {t, box.pitch, 64, box.rows};

                copies_clear(t);
                expect_ok(async ? cudaMemset3DAsync(p, 9, extents[i], copies.stream)
                                : cudaMemset3D(p, 9, extents[i]),
                          "cudaMemset3D");
                expect(box_was_filled(t, &box, 9, &extents[i]), "box");
            }
        }
}

/* ---- memory and pointers --------------------------------------------------------------------- */

/* As each edition has it. `rest` is what it must not touch. */
#if EDITION >= 13
typedef cudaPointerAttributes attributes_of_edition;
#elif EDITION >= 11
typedef cudaPointerAttributes_12 attributes_of_edition;
#elif EDITION == 10
typedef cudaPointerAttributes_10 attributes_of_edition;
#else
typedef cudaPointerAttributes_8 attributes_of_edition;
#endif

static void
check_pointer(const void *p, int type, bool device_sees, bool host_sees)
{
    struct {
        attributes_of_edition a;
        unsigned char rest[16];
    } at;

    memset(&at, 0x77, sizeof at);
    expect_ok(cudaPointerGetAttributes(&at.a, p), "cudaPointerGetAttributes");
#if EDITION <= 10
    expect((int)at.a.memoryType == (type == cudaMemoryTypeManaged ? cudaMemoryTypeDevice : type),
           "memoryType");
    expect(at.a.isManaged == (type == cudaMemoryTypeManaged), "isManaged");
#endif
#if EDITION >= 10
    expect((int)at.a.type == type, "type");
#endif
    expect(at.a.device == (type == cudaMemoryTypeUnregistered ? -2 : 0), "device");
    expect(at.a.devicePointer == (device_sees ? p : NULL), "devicePointer");
    expect(at.a.hostPointer == (host_sees ? p : NULL), "hostPointer");
    for (size_t i = 0; i < sizeof at.rest; i++)
        expect(at.rest[i] == 0x77, "nothing behind the struct is touched");
}

static void
pointers(void)
{
    (void)snprintf(doing, sizeof doing, "pointers");
    check_pointer(copies.from[DEVICE] + 10, cudaMemoryTypeDevice, true, false);
    check_pointer(copies.from[PINNED] + 10, cudaMemoryTypeHost, true, true);
    check_pointer(copies.from[MANAGED] + 10, cudaMemoryTypeManaged, true, true);
#if EDITION >= 11
    check_pointer(copies.from[PAGEABLE], cudaMemoryTypeUnregistered, false, true);
#else
    {
        attributes_of_edition a;

        expect(cudaPointerGetAttributes(&a, copies.from[PAGEABLE]) != cudaSuccess,
               "memory that CUDA does not know is refused");
    }
#endif
}

static void
registered_memory(void)
{
    void *registered = aligned_alloc(4096, 8192);
    void *seen = NULL;

    (void)snprintf(doing, sizeof doing, "registered memory");
    expect_ok(cudaHostRegister(registered, 8192, 2), "cudaHostRegister");
    check_pointer(registered, cudaMemoryTypeHost, true, true);
    expect_ok(cudaHostGetDevicePointer(&seen, registered, 0), "cudaHostGetDevicePointer");
    expect(seen == registered, "one address for host and device");
    expect_ok(cudaHostUnregister(registered), "cudaHostUnregister");
    free(registered);
}

static void
memory(void)
{
    void *p = copies.from[DEVICE], *row = NULL;
    size_t pitch = 0;
    cudaPitchedPtr box;

    (void)snprintf(doing, sizeof doing, "memory");
    expect_ok(cudaMalloc(&p, 0), "cudaMalloc of nothing");
    expect(p == NULL, "nothing is NULL");
    expect(cudaMallocManaged(&p, 0, 1) == (EDITION >= 11   ? cudaSuccess
                                           : EDITION == 10 ? cudaErrorInvalidValue
                                                           : (cudaError_t)11),
           "cudaMallocManaged of nothing");
    expect(cudaFree((void *)(uintptr_t)0x1234) ==
               (EDITION == 8 ? (cudaError_t)17 : cudaErrorInvalidValue),
           "cudaFree of something else");
    expect(cudaSetDeviceFlags(0) == (EDITION >= 11   ? cudaSuccess
                                     : EDITION == 10 ? cudaErrorSetOnActiveProcess
                                                     : (cudaError_t)36),
           "cudaSetDeviceFlags of a device that is in use");
    expect_ok(cudaFree(NULL), "cudaFree of nothing");
    expect_ok(cudaFreeHost(NULL), "cudaFreeHost of nothing");
    expect_ok(cudaMallocPitch(&row, &pitch, 100, 8), "cudaMallocPitch");
    expect(row && pitch >= 100 && pitch % 4 == 0, "pitch");
    expect_ok(cudaMemset2D(row, pitch, 1, 100, 8), "cudaMemset2D");
    expect_ok(cudaFree(row), "cudaFree");
    expect_ok(cudaMalloc3D(&box, (cudaExtent){100, 8, 4}), "cudaMalloc3D");
    expect(box.ptr && box.pitch >= 100 && box.xsize == 100 && box.ysize == 8, "box");
    expect_ok(cudaMemset3D(box, 1, (cudaExtent){100, 8, 4}), "cudaMemset3D");
    expect_ok(cudaFree(box.ptr), "cudaFree");
    expect_ok(cudaMalloc3D(&box, (cudaExtent){100, 8, 0}), "cudaMalloc3D of nothing");
    expect(!box.ptr && box.pitch == 0 && box.xsize == 100 && box.ysize == 8, "box of nothing");
#if EDITION >= 11
    expect_ok(cudaMallocAsync(&p, 1000, copies.stream), "cudaMallocAsync");
    expect_ok(cudaMemsetAsync(p, 1, 1000, copies.stream), "cudaMemsetAsync");
    expect_ok(cudaFreeAsync(p, copies.stream), "cudaFreeAsync");
    expect_ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#endif
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(void);
    } areas[] = {
        {"bytes", copies_of_bytes},
        {"rows", copies_of_rows},
        {"boxes", copies_of_boxes},
        {"peers", copies_of_peers},
        {"fills", fills},
        {"memory", memory},
        {"pointers", pointers},
        {"arrays", copies_of_arrays},
        {"symbols", copies_of_symbols},
        {"managed", managed_symbols},
        {"registered", registered_memory},
    };

    size_t i = 0;

    make_places();
    for (int a = 1; a < argc; a++) {
        for (i = 0; i < sizeof areas / sizeof areas[0]; i++)
            if (strcmp(argv[a], areas[i].name) == 0)
                break;
        if (i == sizeof areas / sizeof areas[0]) {
            fprintf(stderr, "%s: there is no such area\n", argv[a]);
            return 2;
        }
        (void)snprintf(doing, sizeof doing, "%s", argv[a]);
        areas[i].test();
        if (!failures)
            printf("%s: as it should be\n", argv[a]);
    }
    return failures != 0;
}
