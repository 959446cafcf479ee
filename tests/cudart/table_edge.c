/* The edges of copies and fills: what counts as nothing, which pitches are too small, which check
 * comes first, and where runs of bytes go on in arrays. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { EDGE_ROOM = 8192 };

/* The places that calls of this file use. */
static struct {
    char *host, *pinned, *device, *second;
    void *stream;
    void *plane, *box, *line, *pairs; /* arrays of floats; `pairs` has two in an element */
} edge;

#define BOX (const struct table_copy3d *)
#define PEER (const struct table_peer3d *)
#define BOX_FILL (struct table_pitched, int, struct table_extent)
#define RUN_TO (void *, size_t, size_t, const void *, size_t, int)
#define RUN_FROM (void *, const void *, size_t, size_t, size_t, int)
#define RUN_BETWEEN (void *, size_t, size_t, const void *, size_t, size_t, size_t, int)
#define ROWS_TO (void *, size_t, size_t, const void *, size_t, size_t, size_t, int)
#define ROWS_FROM (void *, size_t, const void *, size_t, size_t, size_t, size_t, int)
#define ROWS_BETWEEN (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int)
#define MAKE_ARRAY (void **, const struct table_channel *, struct table_extent, unsigned)

static void
make_edges(void)
{
    const struct table_channel one = {32, 0, 0, 0, 2}, two = {32, 32, 0, 0, 2};

    edge.host = calloc(1, EDGE_ROOM);
    QUIET(cudaMallocHost, (void **, size_t), ((void **)&edge.pinned, EDGE_ROOM));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&edge.device, EDGE_ROOM));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&edge.second, EDGE_ROOM));
    QUIET(cudaStreamCreate, (void **), (&edge.stream));
    QUIET(cudaMalloc3DArray, MAKE_ARRAY, (&edge.plane, &one, (struct table_extent){64, 16, 0}, 0));
    QUIET(cudaMalloc3DArray, MAKE_ARRAY, (&edge.box, &one, (struct table_extent){16, 8, 4}, 0));
    QUIET(cudaMalloc3DArray, MAKE_ARRAY, (&edge.line, &one, (struct table_extent){64, 0, 0}, 0));
    QUIET(cudaMalloc3DArray, MAKE_ARRAY, (&edge.pairs, &two, (struct table_extent){16, 8, 4}, 0));
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* A change to a good copy, and its name. */
#define TRY_BOX(label, change)               \
    do {                                     \
        struct table_copy3d c = good;        \
        change;                              \
        TRY(label, cudaMemcpy3D, BOX, (&c)); \
    } while (0)

static void
boxes_of_pointers(void)
{
    const struct table_copy3d good = {
        .src = {edge.host, 64, 64, 8},
        .dst = {edge.device, 64, 64, 8},
        .extent = {32, 4, 2},
        .kind = TO_DEVICE,
    };

    TRY_BOX("no height", c.extent.height = 0);
    TRY_BOX("no depth", c.extent.depth = 0);
    TRY_BOX("no height, kind 9", (c.extent.height = 0, c.kind = BAD_KIND));
    TRY_BOX("no height, to nothing", (c.extent.height = 0, c.dst.ptr = NULL));
    TRY_BOX("no width, two destinations", (c.extent.width = 0, c.dst_array = edge.box));
    TRY_BOX("source pitch 31", c.src.pitch = 31);
    TRY_BOX("source pitch 31, one row",
            (c.src.pitch = 31, c.extent.height = 1, c.extent.depth = 1));
    TRY_BOX("no source pitch, one row", (c.src.pitch = 0, c.extent.height = c.extent.depth = 1));
    TRY_BOX("source pitch 31, one row in each layer", (c.src.pitch = 31, c.extent.height = 1));
    TRY_BOX("source pitch 31, one layer", (c.src.pitch = 31, c.extent.depth = 1));
    TRY_BOX("higher than y, one layer", (c.extent.height = 9, c.extent.depth = 1));
    TRY_BOX("no y", c.src.ysize = 0);
    TRY_BOX("no y, one layer", (c.src.ysize = 0, c.extent.depth = 1));
    TRY_BOX("destination's y 3", c.dst.ysize = 3);
    TRY_BOX("destination's y 3, one layer", (c.dst.ysize = 3, c.extent.depth = 1));
    TRY_BOX("down over y", (c.dst.ysize = 4, c.dst_pos.y = 1));
    TRY_BOX("no x", c.src.xsize = 0);
    TRY_BOX("small x", c.src.xsize = 8);
    TRY_BOX("kind 9, to nothing", (c.kind = BAD_KIND, c.dst.ptr = NULL));
    TRY_BOX("kind 9, too wide", (c.kind = BAD_KIND, c.extent.width = 65));
    TRY_BOX("wrong kind, too wide", (c.kind = TO_HOST, c.extent.width = 65));
    TRY_BOX("on the device", c.kind = ON_DEVICE);
    TRY_BOX("two sources, kind 9", (c.src_array = edge.box, c.kind = BAD_KIND));
}

static void
boxes_to_arrays(void)
{
    const struct table_copy3d good = {
        .src = {edge.host, 64, 16, 8},
        .dst_array = edge.box,
        .extent = {16, 8, 4},
        .kind = TO_DEVICE,
    };

    TRY_BOX("to an array, on the device", c.kind = ON_DEVICE);
    TRY_BOX("to an array, on the host", c.kind = TO_HOST_FROM_HOST);
    TRY_BOX("to an array, to the host", c.kind = TO_HOST);
    TRY_BOX("to an array, too wide", (c.extent.width = 17, c.src.pitch = 256));
    TRY_BOX("to an array, shifted", (c.dst_pos.x = 1, c.extent.width = 8));
    TRY_BOX("to an array, source shifted", (c.src_pos.x = 4, c.extent.width = 8));
    TRY_BOX("to an array, source shifted too far", (c.src_pos.x = 9, c.extent.width = 8));
    TRY_BOX("to an array, source's y 7", c.src.ysize = 7);
    TRY_BOX("to an array, source's y 7, one layer", (c.src.ysize = 7, c.extent.depth = 1));
    TRY_BOX("to an array, pitch 63", c.src.pitch = 63);
    TRY_BOX("to an array, pitch 15", c.src.pitch = 15);
    TRY_BOX("to an array, too deep", c.extent.depth = 5);
    TRY_BOX("to an array, further down", (c.dst_pos.z = 1, c.extent.depth = 3));
    TRY_BOX("to a plane", (c.dst_array = edge.plane, c.extent.depth = 1));
    TRY_BOX("to a plane, no depth", (c.dst_array = edge.plane, c.extent.depth = 0));
    TRY_BOX("to a line", (c.dst_array = edge.line, c.extent.height = c.extent.depth = 1));
    TRY_BOX("to a line, no height", (c.dst_array = edge.line, c.extent.height = 0));
    TRY_BOX("not an array", c.dst_array = edge.host);
}

static void
boxes_from_arrays(void)
{
    const struct table_copy3d good = {
        .src_array = edge.box,
        .dst_array = edge.box,
        .dst_pos.z = 2,
        .extent = {16, 8, 2},
        .kind = ON_DEVICE,
    };

    TRY_BOX("array to array, as on the host", c.kind = TO_HOST_FROM_HOST);
    TRY_BOX("array to array, as to the host", c.kind = TO_HOST);
    TRY_BOX("array to array, default", c.kind = DEFAULT_KIND);
    TRY_BOX("to larger elements", c.dst_array = edge.pairs);
    TRY_BOX("from larger elements", c.src_array = edge.pairs);
    TRY_BOX("large elements", c.src_array = c.dst_array = edge.pairs);
    TRY_BOX("from an array, as from the host",
            (c.dst_array = NULL, c.dst = (struct table_pitched){edge.host, 64, 16, 8},
             c.kind = TO_HOST_FROM_HOST));
}

#define TRY_PEER(label, change)                   \
    do {                                          \
        struct table_peer3d c = good;             \
        change;                                   \
        TRY(label, cudaMemcpy3DPeer, PEER, (&c)); \
    } while (0)

static void
boxes_between_devices(void)
{
    const struct table_peer3d good = {
        .src = {edge.device, 64, 64, 8},
        .dst = {edge.second, 64, 64, 8},
        .extent = {32, 4, 2},
    };

    TRY_PEER("nothing from device 7", (c.extent.depth = 0, c.src_device = 7));
    TRY_PEER("too wide", c.extent.width = 65);
    TRY_PEER("from nothing", c.src.ptr = NULL);
    TRY_PEER("from nothing on device 7", (c.src.ptr = NULL, c.src_device = 7));
    TRY_PEER("to device -1", c.dst_device = -1);
    TRY_PEER("two destinations", c.dst_array = edge.box);
    TRY_PEER("to an array", (c.dst.ptr = NULL, c.dst_array = edge.box, c.extent.width = 8));
    TRY_PEER("from the host", c.src.ptr = edge.host);
    TRY_PEER("source's y 3", c.src.ysize = 3);
    TRY("no description", cudaMemcpy3DPeerAsync, (const struct table_peer3d *, void *),
        (NULL, edge.stream));
    TRY("from the host", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (edge.device, 0, edge.host, 0, 16));
    TRY("nothing to device -1", cudaMemcpyPeerAsync,
        (void *, int, const void *, int, size_t, void *),
        (edge.device, -1, edge.second, 0, 0, edge.stream));
}

/* ---- rows and runs of arrays ----------------------------------------------------------------- */

static void
rows_of_arrays(void)
{
    TRY("no pitch, one row", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 0, 0, edge.host, 0, 64, 1, TO_DEVICE));
    TRY("pitch 10, one row", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 0, 0, edge.host, 10, 64, 1, TO_DEVICE));
    TRY("pitch 10, kind 9", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 0, 0, edge.host, 10, 64, 2, BAD_KIND));
    TRY("on the host", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 0, 0, edge.host, 64, 64, 2, TO_HOST_FROM_HOST));
    TRY("no array, kind 9", cudaMemcpy2DToArray, ROWS_TO,
        (NULL, 0, 0, edge.host, 64, 64, 2, BAD_KIND));
    TRY("no height, kind 9", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 0, 0, edge.host, 10, 64, 0, BAD_KIND));
    TRY("a line", cudaMemcpy2DToArray, ROWS_TO, (edge.line, 0, 0, edge.host, 64, 64, 1, TO_DEVICE));
    TRY("below a line", cudaMemcpy2DToArray, ROWS_TO,
        (edge.line, 0, 1, edge.host, 64, 64, 1, TO_DEVICE));
    TRY("behind a row", cudaMemcpy2DToArray, ROWS_TO,
        (edge.plane, 300, 0, edge.host, 64, 64, 2, TO_DEVICE));
    TRY("a box", cudaMemcpy2DToArray, ROWS_TO, (edge.box, 0, 0, edge.host, 64, 64, 2, TO_DEVICE));
    TRY("no pitch, one row", cudaMemcpy2DFromArray, ROWS_FROM,
        (edge.host, 0, edge.plane, 0, 0, 64, 1, TO_HOST));
    TRY("on the host", cudaMemcpy2DFromArray, ROWS_FROM,
        (edge.host, 64, edge.plane, 0, 0, 64, 2, TO_HOST_FROM_HOST));
    TRY("no array, on the host", cudaMemcpy2DFromArray, ROWS_FROM,
        (edge.host, 64, NULL, 0, 0, 64, 2, TO_HOST_FROM_HOST));
    TRY("to nothing", cudaMemcpy2DFromArray, ROWS_FROM,
        (NULL, 64, edge.plane, 4, 1, 64, 2, TO_HOST));
    TRY("to the host", cudaMemcpy2DArrayToArray, ROWS_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 64, 8, TO_HOST));
    TRY("kind 9, no width", cudaMemcpy2DArrayToArray, ROWS_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 0, 8, BAD_KIND));
    TRY("other elements", cudaMemcpy2DArrayToArray, ROWS_BETWEEN,
        (edge.plane, 4, 0, edge.pairs, 8, 1, 16, 2, ON_DEVICE));
    TRY("no destination", cudaMemcpy2DArrayToArray, ROWS_BETWEEN,
        (NULL, 4, 0, edge.pairs, 8, 1, 16, 2, ON_DEVICE));
    TRY("no source", cudaMemcpy2DArrayToArray, ROWS_BETWEEN,
        (edge.plane, 4, 0, NULL, 8, 1, 16, 2, ON_DEVICE));
}

static void
runs_of_arrays(void)
{
    /* Rows have 256 bytes. */
    static const struct {
        const char *label;
        size_t x, y, count;
    } runs[] = {
        {"a row", 0, 0, 256},
        {"less than a row", 0, 0, 255},
        {"more than a row", 0, 0, 257},
        {"the rest of a row", 4, 0, 252},
        {"one byte over", 4, 0, 253},
        {"the rest and a row", 4, 0, 508},
        {"the last bytes", 4, 15, 252},
        {"one byte over the end", 4, 15, 253},
        {"below", 4, 16, 25},
        {"from the end of a row", 256, 0, 256},
        {"from behind a row", 260, 0, 256},
        {"all", 0, 0, 4096},
        {"one byte more than all", 0, 0, 4097},
        {"all, shifted", 4, 0, 4096},
    };

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        TRY(runs[i].label, cudaMemcpyToArray, RUN_TO,
            (edge.plane, runs[i].x, runs[i].y, edge.host, runs[i].count, TO_DEVICE));
        TRY(runs[i].label, cudaMemcpyFromArray, RUN_FROM,
            (edge.host, edge.plane, runs[i].x, runs[i].y, runs[i].count, TO_HOST));
    }
    TRY("no array, kind 9", cudaMemcpyToArray, RUN_TO, (NULL, 0, 0, edge.host, 64, BAD_KIND));
    TRY("no array, wrong kind", cudaMemcpyToArray, RUN_TO, (NULL, 0, 0, edge.host, 64, TO_HOST));
    TRY("default", cudaMemcpyToArray, RUN_TO, (edge.plane, 0, 0, edge.host, 64, DEFAULT_KIND));
    TRY("from nothing", cudaMemcpyToArray, RUN_TO, (edge.plane, 0, 0, NULL, 64, TO_DEVICE));
    TRY("a line", cudaMemcpyToArray, RUN_TO, (edge.line, 0, 0, edge.host, 64, TO_DEVICE));
    TRY("over a line", cudaMemcpyToArray, RUN_TO, (edge.line, 0, 0, edge.host, 257, TO_DEVICE));
    TRY("over a layer", cudaMemcpyToArray, RUN_TO, (edge.box, 0, 0, edge.host, 1024, TO_DEVICE));
    TRY("large elements", cudaMemcpyToArray, RUN_TO, (edge.pairs, 0, 0, edge.host, 256, TO_DEVICE));
    TRY("kind 9", cudaMemcpyFromArray, RUN_FROM, (edge.host, edge.plane, 0, 0, 64, BAD_KIND));
    TRY("default", cudaMemcpyFromArray, RUN_FROM, (edge.host, edge.plane, 0, 0, 64, DEFAULT_KIND));
    TRY("wrong kind", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 512, TO_DEVICE));
    TRY("kind 9", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 512, BAD_KIND));
    TRY("kind 9, nothing", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 0, BAD_KIND));
    TRY("default", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 0, edge.plane, 0, 8, 512, DEFAULT_KIND));
    TRY("no source", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 0, NULL, 0, 8, 512, ON_DEVICE));
    TRY("no destination", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (NULL, 0, 0, edge.plane, 0, 8, 512, ON_DEVICE));
    TRY("too much", cudaMemcpyArrayToArray, RUN_BETWEEN,
        (edge.plane, 0, 12, edge.plane, 0, 0, 4096, ON_DEVICE));
}

/* ---- fills ----------------------------------------------------------------------------------- */

static void
fills_of_boxes(void)
{
    static const struct {
        const char *label;
        size_t pitch, y;
        struct table_extent extent;
    } fills[] = {
        {"all", 64, 8, {64, 8, 2}},
        {"wide", 64, 8, {65, 8, 2}},
        {"wide, one row", 64, 8, {65, 1, 1}},
        {"high, one layer", 64, 8, {32, 9, 1}},
        {"high", 64, 8, {32, 9, 2}},
        {"no y", 64, 0, {32, 8, 1}},
        {"no y, one row", 64, 0, {32, 1, 1}},
        {"no pitch, one row", 0, 8, {32, 1, 1}},
        {"no pitch, one row in each layer", 0, 8, {32, 1, 2}},
        {"no pitch, one layer", 0, 8, {32, 2, 1}},
        {"y 1", 64, 1, {32, 2, 1}},
        {"wide, no height", 64, 1, {65, 0, 1}},
        {"wide, high, no depth", 64, 8, {65, 9, 0}},
        {"layers with gaps", 64, 8, {32, 4, 2}},
        {"rows with gaps", 64, 8, {32, 8, 4}},
        {"neither", 64, 8, {64, 4, 2}},
    };

    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        const struct table_pitched at = {edge.device, fills[i].pitch, 60, fills[i].y};

        QUIET(cudaMemset, (void *, int, size_t), (edge.device, 0, EDGE_ROOM));
        TRY(fills[i].label, cudaMemset3D, BOX_FILL, (at, 1, fills[i].extent));
        QUIET(cudaMemcpy, (void *, const void *, size_t, int),
              (edge.host, edge.device, EDGE_ROOM, TO_HOST));
        {
            int filled = 0;

            for (int k = 0; k < EDGE_ROOM; k++)
                filled += edge.host[k] == 1;
            table_show("%d bytes", filled);
        }
    }
    TRY("no pitch, one row", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (edge.device, 0, 1, 32, 1));
    TRY("nothing at NULL", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (NULL, 64, 1, 32, 0));
    TRY("of the host", cudaMemset, (void *, int, size_t), (edge.host, 0, 16));
    TRY("pinned", cudaMemset, (void *, int, size_t), (edge.pinned, 0, 16));
    TRY("minus one", cudaMemset, (void *, int, size_t), (edge.device, -1, 16));
}

void
table_edges(void)
{
    make_edges();
    boxes_of_pointers();
    boxes_to_arrays();
    boxes_from_arrays();
    boxes_between_devices();
    rows_of_arrays();
    runs_of_arrays();
    fills_of_boxes();
}
