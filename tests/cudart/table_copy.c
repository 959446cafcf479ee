/* Copies between pointers: in one, two and three dimensions, of every kind, between devices, to
 * symbols. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_ROOM = 8192 };

/* The places that copies of this file use. */
static struct {
    char *host;   /* pageable */
    char *pinned; /* page-locked */
    char *device, *second;
    void *stream;
} at;

static void
make_places(void)
{
    at.host = calloc(1, COPY_ROOM);
    for (int i = 0; i < COPY_ROOM; i++)
        at.host[i] = (char)i;
    QUIET(cudaMallocHost, (void **, size_t), ((void **)&at.pinned, COPY_ROOM));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&at.device, COPY_ROOM));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&at.second, COPY_ROOM));
    QUIET(cudaStreamCreate, (void **), (&at.stream));
}

#define COPY (void *, const void *, size_t, int)
#define COPY_ASYNC (void *, const void *, size_t, int, void *)
#define COPY_2D (void *, size_t, const void *, size_t, size_t, size_t, int)
#define COPY_2D_ASYNC (void *, size_t, const void *, size_t, size_t, size_t, int, void *)

static void
plain_copies(void)
{
    char back[64] = "";

    TRY("to the device", cudaMemcpy, COPY, (at.device, at.host, 1024, TO_DEVICE));
    TRY("on the device", cudaMemcpy, COPY, (at.second, at.device, 1024, ON_DEVICE));
    TRY("to the host", cudaMemcpy, COPY, (back, at.second, 64, TO_HOST));
    table_show("same %d", memcmp(back, at.host, 64) == 0);
    TRY("on the host", cudaMemcpy, COPY, (back, at.host + 64, 64, TO_HOST_FROM_HOST));
    table_show("same %d", memcmp(back, at.host + 64, 64) == 0);
    TRY("default, to the device", cudaMemcpy, COPY, (at.device, at.host, 1024, DEFAULT_KIND));
    TRY("default, to the host", cudaMemcpy, COPY, (back, at.device, 64, DEFAULT_KIND));
    table_show("same %d", memcmp(back, at.host, 64) == 0);
    TRY("default, on the host", cudaMemcpy, COPY, (back, at.host + 64, 64, DEFAULT_KIND));
    TRY("pinned", cudaMemcpy, COPY, (at.device, at.pinned, 64, TO_DEVICE));
    TRY("pinned as a device", cudaMemcpy, COPY, (at.device, at.pinned, 64, ON_DEVICE));
    TRY("kind 9", cudaMemcpy, COPY, (at.device, at.host, 64, BAD_KIND));
    TRY("kind -1", cudaMemcpy, COPY, (at.device, at.host, 64, -1));
    TRY("kind 5", cudaMemcpy, COPY, (at.device, at.host, 64, 5));
    TRY("kind 9, nothing", cudaMemcpy, COPY, (at.device, at.host, 0, BAD_KIND));
    TRY("nothing", cudaMemcpy, COPY, (at.device, at.host, 0, TO_DEVICE));
    TRY("nothing from NULL to NULL", cudaMemcpy, COPY, (NULL, NULL, 0, TO_DEVICE));
    TRY("to NULL", cudaMemcpy, COPY, (NULL, at.host, 4, TO_DEVICE));
    TRY("from NULL", cudaMemcpy, COPY, (at.device, NULL, 4, TO_DEVICE));
    TRY("NULL to the host", cudaMemcpy, COPY, (back, NULL, 4, TO_HOST));
    TRY("NULL on the device", cudaMemcpy, COPY, (at.device, NULL, 4, ON_DEVICE));
    TRY("default, NULL", cudaMemcpy, COPY, (NULL, at.host, 4, DEFAULT_KIND));
    TRY("too long", cudaMemcpy, COPY, (at.host, at.device, 1 << 24, TO_HOST));
    TRY("from the host as a device", cudaMemcpy, COPY, (back, at.host, 4, TO_HOST));
    TRY("to the host as a device", cudaMemcpy, COPY, (back, at.host, 4, TO_DEVICE));
    TRY("both in the host on the device", cudaMemcpy, COPY, (back, at.host, 4, ON_DEVICE));
    TRY("to the device", cudaMemcpy_ptds, COPY, (at.device, at.host, 1024, TO_DEVICE));
    TRY("kind 9", cudaMemcpy_ptds, COPY, (at.device, at.host, 64, BAD_KIND));
}

static void
asynchronous_copies(void)
{
    TRY("to the device", cudaMemcpyAsync, COPY_ASYNC,
        (at.device, at.pinned, 64, TO_DEVICE, at.stream));
    TRY("to the host", cudaMemcpyAsync, COPY_ASYNC, (at.pinned, at.device, 64, TO_HOST, at.stream));
    TRY("on the device", cudaMemcpyAsync, COPY_ASYNC,
        (at.second, at.device, 64, ON_DEVICE, at.stream));
    TRY("on the host", cudaMemcpyAsync, COPY_ASYNC,
        (at.host, at.host + 64, 64, TO_HOST_FROM_HOST, at.stream));
    TRY("default", cudaMemcpyAsync, COPY_ASYNC,
        (at.device, at.pinned, 64, DEFAULT_KIND, at.stream));
    TRY("default stream", cudaMemcpyAsync, COPY_ASYNC, (at.device, at.host, 64, TO_DEVICE, NULL));
    TRY("kind 9", cudaMemcpyAsync, COPY_ASYNC, (at.device, at.host, 64, BAD_KIND, at.stream));
    TRY("nothing", cudaMemcpyAsync, COPY_ASYNC, (at.device, at.host, 0, TO_DEVICE, at.stream));
    TRY("to NULL", cudaMemcpyAsync, COPY_ASYNC, (NULL, at.host, 4, TO_DEVICE, at.stream));
    TRY("from NULL", cudaMemcpyAsync, COPY_ASYNC, (at.device, NULL, 4, TO_DEVICE, at.stream));
    TRY("too long", cudaMemcpyAsync, COPY_ASYNC,
        (at.second, at.device, 1 << 24, ON_DEVICE, at.stream));
    TRY("default stream", cudaMemcpyAsync_ptsz, COPY_ASYNC,
        (at.device, at.host, 64, TO_DEVICE, NULL));
    QUIET(cudaDeviceSynchronize, (void), ());
}

static void
copies_between_devices(void)
{
    struct table_peer3d peer = {
        .src = {at.device, 64, 16, 8},
        .dst = {at.second, 64, 16, 8},
        .extent = {16, 4, 1},
    };

    TRY("one device", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (at.second, 0, at.device, 0, 16));
    TRY("from device 7", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (at.second, 0, at.device, 7, 16));
    TRY("to device -1", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (at.second, -1, at.device, 0, 16));
    TRY("nothing", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (at.second, 0, at.device, 0, 0));
    TRY("nothing from device 7", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (at.second, 0, at.device, 7, 0));
    TRY("NULL", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (NULL, 0, at.device, 0, 16));
    TRY("one device", cudaMemcpyPeerAsync, (void *, int, const void *, int, size_t, void *),
        (at.second, 0, at.device, 0, 16, at.stream));
    TRY("from device 7", cudaMemcpyPeerAsync, (void *, int, const void *, int, size_t, void *),
        (at.second, 0, at.device, 7, 16, at.stream));
    TRY("plain", cudaMemcpy3DPeer, (const struct table_peer3d *), (&peer));
    TRY("plain", cudaMemcpy3DPeerAsync, (const struct table_peer3d *, void *), (&peer, at.stream));
    TRY("no description", cudaMemcpy3DPeer, (const struct table_peer3d *), (NULL));
    peer.src_device = 7;
    TRY("from device 7", cudaMemcpy3DPeer, (const struct table_peer3d *), (&peer));
    peer.src_device = 0;
    peer.extent.depth = 0;
    TRY("nothing", cudaMemcpy3DPeer, (const struct table_peer3d *), (&peer));
}

static void
copies_of_rows(void)
{
    TRY("to the device", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 100, 8, TO_DEVICE));
    TRY("to the host", cudaMemcpy2D, COPY_2D, (at.host, 100, at.device, 512, 100, 8, TO_HOST));
    TRY("on the device", cudaMemcpy2D, COPY_2D, (at.second, 512, at.device, 512, 50, 8, ON_DEVICE));
    TRY("on the host", cudaMemcpy2D, COPY_2D,
        (at.host, 100, at.host + 4096, 100, 50, 8, TO_HOST_FROM_HOST));
    TRY("default", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 100, 8, DEFAULT_KIND));
    TRY("kind 9", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 100, 8, BAD_KIND));
    TRY("kind 9, no width", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 0, 8, BAD_KIND));
    TRY("kind 9, small pitch", cudaMemcpy2D, COPY_2D,
        (at.device, 512, at.host, 50, 100, 8, BAD_KIND));
    TRY("small source pitch", cudaMemcpy2D, COPY_2D,
        (at.device, 512, at.host, 50, 100, 8, TO_DEVICE));
    TRY("small pitch", cudaMemcpy2D, COPY_2D, (at.device, 50, at.host, 100, 100, 8, TO_DEVICE));
    TRY("small pitch, one row", cudaMemcpy2D, COPY_2D,
        (at.device, 50, at.host, 50, 100, 1, TO_DEVICE));
    TRY("no pitch, one row", cudaMemcpy2D, COPY_2D, (at.device, 0, at.host, 0, 100, 1, TO_DEVICE));
    TRY("huge pitch", cudaMemcpy2D, COPY_2D,
        (at.device, (size_t)1 << 40, at.host, 100, 100, 2, TO_DEVICE));
    TRY("no width", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 0, 8, TO_DEVICE));
    TRY("no height", cudaMemcpy2D, COPY_2D, (at.device, 512, at.host, 100, 100, 0, TO_DEVICE));
    TRY("to NULL", cudaMemcpy2D, COPY_2D, (NULL, 512, at.host, 100, 100, 8, TO_DEVICE));
    TRY("from NULL", cudaMemcpy2D, COPY_2D, (at.device, 512, NULL, 100, 100, 8, TO_DEVICE));
    TRY("too many rows", cudaMemcpy2D, COPY_2D,
        (at.second, 512, at.device, 512, 100, 1 << 20, ON_DEVICE));
    TRY("plain", cudaMemcpy2DAsync, COPY_2D_ASYNC,
        (at.device, 512, at.host, 100, 100, 8, TO_DEVICE, at.stream));
    TRY("default", cudaMemcpy2DAsync, COPY_2D_ASYNC,
        (at.device, 512, at.host, 100, 100, 8, DEFAULT_KIND, at.stream));
    TRY("small pitch", cudaMemcpy2DAsync, COPY_2D_ASYNC,
        (at.device, 50, at.host, 100, 100, 8, TO_DEVICE, at.stream));
    TRY("kind 9", cudaMemcpy2DAsync, COPY_2D_ASYNC,
        (at.device, 512, at.host, 100, 100, 8, BAD_KIND, at.stream));
    TRY("nothing", cudaMemcpy2DAsync, COPY_2D_ASYNC,
        (at.device, 512, at.host, 100, 0, 8, TO_DEVICE, at.stream));
}

static void
copies_of_boxes(void)
{
    const struct table_copy3d good = {
        .src = {at.host, 64, 64, 8},
        .dst = {at.device, 64, 64, 8},
        .extent = {32, 4, 2},
        .kind = TO_DEVICE,
    };
    struct table_copy3d box = good;

    TRY("plain", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    TRY("plain", cudaMemcpy3DAsync, (const struct table_copy3d *, void *), (&box, at.stream));
    TRY("no description", cudaMemcpy3D, (const struct table_copy3d *), (NULL));
    box.kind = DEFAULT_KIND;
    TRY("default", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.kind = BAD_KIND;
    TRY("kind 9", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.extent.width = 0;
    TRY("kind 9, nothing", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.kind = TO_DEVICE;
    TRY("nothing", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.extent.width = 65;
    TRY("wider than the pitch", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.src_pos.x = 40;
    TRY("behind the pitch", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.extent.height = 9;
    TRY("higher than y", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.src_pos = (struct table_position){4, 1, 1}, box.dst_pos = (struct table_position){8, 2, 0};
    TRY("moved", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.dst.ptr = NULL;
    TRY("to nothing", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.src.ptr = NULL;
    TRY("from nothing", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.kind = TO_HOST;
    TRY("wrong kind", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box = good;
    box.src.pitch = 0;
    TRY("no pitch", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    QUIET(cudaDeviceSynchronize, (void), ());
}

void
table_copies(void)
{
    make_places();
    plain_copies();
    asynchronous_copies();
    copies_between_devices();
    copies_of_rows();
    copies_of_boxes();
}

#define TO_SYMBOL (const void *, const void *, size_t, size_t, int)
#define FROM_SYMBOL (void *, const void *, size_t, size_t, int)

static void
copies_to_symbols(void)
{
    TRY("plain", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 64, 0, TO_DEVICE));
    TRY("constant", cudaMemcpyToSymbol, TO_SYMBOL, (table_const, at.host, 64, 0, TO_DEVICE));
    TRY("from the device", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.device, 16, 0, ON_DEVICE));
    TRY("default", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 16, 0, DEFAULT_KIND));
    TRY("to the host", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 16, 0, TO_HOST));
    TRY("on the host", cudaMemcpyToSymbol, TO_SYMBOL,
        (table_dev, at.host, 16, 0, TO_HOST_FROM_HOST));
    TRY("kind 9", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 16, 0, BAD_KIND));
    TRY("kind 9, too long", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 99, 0, BAD_KIND));
    TRY("kind 9, no symbol", cudaMemcpyToSymbol, TO_SYMBOL, (NULL, at.host, 16, 0, BAD_KIND));
    TRY("too long", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 65, 0, TO_DEVICE));
    TRY("too far", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 60, 8, TO_DEVICE));
    TRY("beyond", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 4, 100, TO_DEVICE));
    TRY("around", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 8, (size_t)-4, TO_DEVICE));
    TRY("with an offset", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 8, 8, TO_DEVICE));
    TRY("not a symbol", cudaMemcpyToSymbol, TO_SYMBOL, (at.host, at.host, 4, 0, TO_DEVICE));
    TRY("no symbol", cudaMemcpyToSymbol, TO_SYMBOL, (NULL, at.host, 4, 0, TO_DEVICE));
    TRY("a kernel", cudaMemcpyToSymbol, TO_SYMBOL, (&table_add, at.host, 4, 0, TO_DEVICE));
    TRY("inside a symbol", cudaMemcpyToSymbol, TO_SYMBOL,
        (table_dev + 4, at.host, 4, 0, TO_DEVICE));
    TRY("nothing", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 0, 0, TO_DEVICE));
    TRY("nothing to no symbol", cudaMemcpyToSymbol, TO_SYMBOL, (NULL, at.host, 0, 0, TO_DEVICE));
    TRY("from NULL", cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, NULL, 4, 0, TO_DEVICE));
    TRY("plain", cudaMemcpyToSymbolAsync, (const void *, const void *, size_t, size_t, int, void *),
        (table_dev, at.pinned, 64, 0, TO_DEVICE, at.stream));
    TRY("no symbol", cudaMemcpyToSymbolAsync,
        (const void *, const void *, size_t, size_t, int, void *),
        (NULL, at.pinned, 64, 0, TO_DEVICE, at.stream));
    TRY("too long", cudaMemcpyToSymbolAsync,
        (const void *, const void *, size_t, size_t, int, void *),
        (table_dev, at.pinned, 65, 0, TO_DEVICE, at.stream));
}

static void
copies_from_symbols(void)
{
    QUIET(cudaMemcpyToSymbol, TO_SYMBOL, (table_dev, at.host, 64, 0, TO_DEVICE));
    TRY("plain", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host + 1024, table_dev, 64, 0, TO_HOST));
    table_show("same %d", memcmp(at.host, at.host + 1024, 64) == 0);
    TRY("to the device", cudaMemcpyFromSymbol, FROM_SYMBOL,
        (at.device, table_dev, 64, 0, ON_DEVICE));
    TRY("default", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, table_dev, 16, 0, DEFAULT_KIND));
    TRY("wrong kind", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, table_dev, 16, 0, TO_DEVICE));
    TRY("on the host", cudaMemcpyFromSymbol, FROM_SYMBOL,
        (at.host, table_dev, 16, 0, TO_HOST_FROM_HOST));
    TRY("kind 9", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, table_dev, 16, 0, BAD_KIND));
    TRY("too long", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, table_dev, 65, 0, TO_HOST));
    TRY("no symbol", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, NULL, 4, 0, TO_HOST));
    TRY("nothing", cudaMemcpyFromSymbol, FROM_SYMBOL, (at.host, table_dev, 0, 0, TO_HOST));
    TRY("plain", cudaMemcpyFromSymbolAsync, (void *, const void *, size_t, size_t, int, void *),
        (at.pinned, table_dev, 64, 0, TO_HOST, at.stream));
    TRY("no symbol", cudaMemcpyFromSymbolAsync, (void *, const void *, size_t, size_t, int, void *),
        (at.pinned, NULL, 64, 0, TO_HOST, at.stream));
    QUIET(cudaDeviceSynchronize, (void), ());
}

void
table_symbols(void)
{
    void *address = NULL, *again = NULL;
    size_t size = 77;

    table_register();
    TRY("plain", cudaGetSymbolSize, (size_t *, const void *), (&size, table_dev));
    table_show("%zu", size);
    make_places();
    TRY("plain", cudaGetSymbolAddress, (void **, const void *), (&address, table_dev));
    table_show("something %d", address != NULL);
    TRY("again", cudaGetSymbolAddress, (void **, const void *), (&again, table_dev));
    table_show("same %d", address == again);
    TRY("constant", cudaGetSymbolAddress, (void **, const void *), (&address, table_const));
    TRY("not a symbol", cudaGetSymbolAddress, (void **, const void *), (&address, at.host));
    TRY("no symbol", cudaGetSymbolAddress, (void **, const void *), (&address, NULL));
    TRY("a kernel", cudaGetSymbolAddress, (void **, const void *), (&address, &table_add));
    TRY("not a symbol", cudaGetSymbolSize, (size_t *, const void *), (&size, at.host));
    TRY("no symbol", cudaGetSymbolSize, (size_t *, const void *), (&size, NULL));
    copies_to_symbols();
    copies_from_symbols();
    table_show("managed memory is there %d", table_managed != NULL);
    TRY("the place of managed memory", cudaGetSymbolAddress, (void **, const void *),
        (&address, &table_managed));
    if (table_managed) {
        TRY("managed", cudaGetSymbolAddress, (void **, const void *), (&address, table_managed));
        table_show("same %d", address == table_managed);
        TRY("managed", cudaMemcpyToSymbol, TO_SYMBOL, (table_managed, at.host, 64, 0, TO_DEVICE));
        TRY("managed", cudaGetSymbolSize, (size_t *, const void *), (&size, table_managed));
        table_show("%zu", size);
    }
    TRY("a variable that the image lacks", cudaGetSymbolAddress, (void **, const void *),
        (&address, table_lost));
    TRY("a variable that the image lacks", cudaGetSymbolSize, (size_t *, const void *),
        (&size, table_lost));
    QUIET(cudaSetDevice, (int), (1));
    TRY("on the other device", cudaGetSymbolAddress, (void **, const void *), (&again, table_dev));
    table_show("the same as on the first %d", again == address);
    TRY("on the other device", cudaMemcpyToSymbol, TO_SYMBOL,
        (table_dev, at.host, 64, 0, TO_DEVICE));
}
