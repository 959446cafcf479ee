/* Devices and contexts: before anything else was called ("lazy"), and afterwards. */
#include "table.h"

#include <string.h>

static void
flags_lazy(void)
{
    unsigned flags = 77;

    TRY("before a context", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    TRY("no place", cudaGetDeviceFlags, (unsigned *), (NULL));
    TRY("bad", cudaSetDeviceFlags, (unsigned), (0xffff));
    TRY("two schedules", cudaSetDeviceFlags, (unsigned), (3));
    TRY("yield", cudaSetDeviceFlags, (unsigned), (2));
    TRY("after yield", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    TRY("blocking", cudaSetDeviceFlags, (unsigned), (4));
    TRY("after blocking", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    TRY("map host", cudaSetDeviceFlags, (unsigned), (8));
    TRY("resize local memory", cudaSetDeviceFlags, (unsigned), (16));
    TRY("after resize", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    TRY("none", cudaSetDeviceFlags, (unsigned), (0));
}

/* What can be asked and set before there is a context. */
void
table_lazy(void)
{
    int device = 77, devices[2] = {1, 0};

    TRY("before anything", cudaPeekAtLastError, (void), ());
    TRY("before anything", cudaGetLastError, (void), ());
    TRY("before anything", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("no place", cudaGetDevice, (int *), (NULL));
    TRY("two", cudaGetDeviceCount, (int *), (&device));
    table_show("count %d", device);
    TRY("no place", cudaGetDeviceCount, (int *), (NULL));
    flags_lazy();
    TRY("second first", cudaSetValidDevices, (int *, int), (devices, 2));
    TRY("after a list", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("no list, none", cudaSetValidDevices, (int *, int), (NULL, 0));
    TRY("no list, one", cudaSetValidDevices, (int *, int), (NULL, 1));
    TRY("negative count", cudaSetValidDevices, (int *, int), (devices, -1));
    devices[0] = 7;
    TRY("a device that is not there", cudaSetValidDevices, (int *, int), (devices, 1));
    TRY("too many", cudaSetValidDevices, (int *, int), (devices, 9));
    TRY("with nothing to wait for", cudaDeviceSynchronize, (void), ());
    TRY("after the first wait", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("a device that is not there", cudaInitDevice, (int, unsigned, unsigned), (7, 0, 0));
    TRY("plain", cudaInitDevice, (int, unsigned, unsigned), (1, 0, 0));
    TRY("after init of another", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("bad flags", cudaInitDevice, (int, unsigned, unsigned), (1, 0, 7));
    TRY("bad device flags", cudaInitDevice, (int, unsigned, unsigned), (1, 0xffff, 1));
    TRY("spin", cudaInitDevice, (int, unsigned, unsigned), (1, 1, 1));
    TRY("after bad device flags", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
}

static void
attributes_of_devices(void)
{
    int value = 77;

    TRY("warp size", cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 0));
    table_show("%d", value);
    TRY("no place", cudaDeviceGetAttribute, (int *, int, int), (NULL, 10, 0));
    TRY("bad attribute", cudaDeviceGetAttribute, (int *, int, int), (&value, 99999, 0));
    TRY("attribute 0", cudaDeviceGetAttribute, (int *, int, int), (&value, 0, 0));
    TRY("device 7", cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 7));
    TRY("device -1", cudaDeviceGetAttribute, (int *, int, int), (&value, 10, -1));
    table_show("%d", value);
    for (int i = 1; i < 150; i++) {
        /* The identity of the machine's devices, and of its memory nodes. */
        if (i == 33 || i == 34 || i == 50 || (i >= 130 && i <= 140))
            continue;
        value = -77;
        if (QUIET(cudaDeviceGetAttribute, (int *, int, int), (&value, i, 1)) == 0)
            table_show("attribute %d of device 1: %d", i, value);
    }
}

/* The words of the struct, which differs between editions: all that is not zero and is the same on
 * every machine. */
static void
show_properties(const void *struct_, size_t size, size_t skip_from, size_t skip_to)
{
    uint32_t words[512];

    memcpy(words, struct_, size);
    /* What the runtime did not write is beyond its struct. */
    while (size > 0 && words[size / 4 - 1] == 0xcdcdcdcd)
        size -= 4;
    table_show("%zu bytes", size);
    for (size_t i = 0; i < size / 4; i++) {
        if (i * 4 >= skip_from && i * 4 < skip_to)
            continue;
        if (words[i] != 0)
            table_show("word %zu: 0x%x", i, words[i]);
    }
}

static void
properties_of_devices(void)
{
    static char room[2048];
    int device = 77;

    memset(room, 0xcd, sizeof room);
    TRY("no place", cudaGetDeviceProperties, (void *, int), (NULL, 0));
    TRY("device 7", cudaGetDeviceProperties, (void *, int), (room, 7));
    TRY("device -1", cudaGetDeviceProperties, (void *, int), (room, -1));
    table_show("untouched %d", (unsigned char)room[0] == 0xcd);
    TRY("device 1", cudaGetDeviceProperties, (void *, int), (room, 1));
    /* Name, UUID and LUID; the size of memory. */
    show_properties(room, sizeof room, 256, 296);
    memset(room, 0xcd, sizeof room);
    if (TRY("device 1", cudaGetDeviceProperties_v2, (void *, int), (room, 1)) == 0)
        show_properties(room, sizeof room, 256, 296);
    TRY("device 7", cudaGetDeviceProperties_v2, (void *, int), (room, 7));
    memset(room, 0, sizeof room);
    TRY("any", cudaChooseDevice, (int *, const void *), (&device, room));
    table_show("device %d", device);
    TRY("no place", cudaChooseDevice, (int *, const void *), (NULL, room));
    TRY("no wishes", cudaChooseDevice, (int *, const void *), (&device, NULL));
}

static void
addresses_of_devices(void)
{
    char text[32] = "", name[32];
    int device = 77;

    TRY("device 1", cudaDeviceGetPCIBusId, (char *, int, int), (name, 32, 1));
    TRY("two characters", cudaDeviceGetPCIBusId, (char *, int, int), (text, 2, 0));
    TRY("no place", cudaDeviceGetPCIBusId, (char *, int, int), (NULL, 32, 0));
    TRY("device 7", cudaDeviceGetPCIBusId, (char *, int, int), (text, 32, 7));
    TRY("of device 1", cudaDeviceGetByPCIBusId, (int *, const char *), (&device, name));
    table_show("device %d", device);
    TRY("nonsense", cudaDeviceGetByPCIBusId, (int *, const char *), (&device, "zzz"));
    TRY("no such device", cudaDeviceGetByPCIBusId, (int *, const char *),
        (&device, "7777:77:00.0"));
    TRY("no place", cudaDeviceGetByPCIBusId, (int *, const char *), (NULL, name));
    TRY("no text", cudaDeviceGetByPCIBusId, (int *, const char *), (&device, NULL));
}

static void
current_device(void)
{
    int device = 77;

    TRY("device 7", cudaSetDevice, (int), (7));
    TRY("device -1", cudaSetDevice, (int), (-1));
    TRY("device 1", cudaSetDevice, (int), (1));
    TRY("after device 1", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("device 2", cudaSetDevice, (int), (2));
    TRY("after device 2", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("device 0", cudaSetDevice, (int), (0));
    TRY("after device 0", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
}

static void
settings_of_devices(void)
{
    size_t bytes = 77;
    int value = 77, other = 77;

    TRY("stack", cudaDeviceGetLimit, (size_t *, int), (&bytes, 0));
    table_show("%zu", bytes);
    TRY("no place", cudaDeviceGetLimit, (size_t *, int), (NULL, 0));
    TRY("bad limit", cudaDeviceGetLimit, (size_t *, int), (&bytes, 99));
    TRY("negative limit", cudaDeviceGetLimit, (size_t *, int), (&bytes, -1));
    TRY("stack", cudaDeviceSetLimit, (int, size_t), (0, 2048));
    TRY("stack, set", cudaDeviceGetLimit, (size_t *, int), (&bytes, 0));
    table_show("%zu", bytes);
    TRY("bad limit", cudaDeviceSetLimit, (int, size_t), (99, 1));
    TRY("printf", cudaDeviceGetLimit, (size_t *, int), (&bytes, 1));
    TRY("heap", cudaDeviceGetLimit, (size_t *, int), (&bytes, 2));
    TRY("stack", cudaThreadGetLimit, (size_t *, int), (&bytes, 0));
    TRY("stack", cudaThreadSetLimit, (int, size_t), (0, 2048));
    TRY("plain", cudaDeviceGetCacheConfig, (int *), (&value));
    table_show("%d", value);
    TRY("no place", cudaDeviceGetCacheConfig, (int *), (NULL));
    TRY("L1", cudaDeviceSetCacheConfig, (int), (2));
    TRY("bad", cudaDeviceSetCacheConfig, (int), (9));
    TRY("plain", cudaThreadGetCacheConfig, (int *), (&value));
    TRY("none", cudaThreadSetCacheConfig, (int), (0));
    TRY("plain", cudaDeviceGetSharedMemConfig, (int *), (&value));
    table_show("%d", value);
    TRY("no place", cudaDeviceGetSharedMemConfig, (int *), (NULL));
    TRY("four", cudaDeviceSetSharedMemConfig, (int), (1));
    TRY("bad", cudaDeviceSetSharedMemConfig, (int), (9));
    TRY("both", cudaDeviceGetStreamPriorityRange, (int *, int *), (&value, &other));
    table_show("%d to %d", value, other);
    TRY("no place", cudaDeviceGetStreamPriorityRange, (int *, int *), (NULL, NULL));
    TRY("plain", cudaCtxResetPersistingL2Cache, (void), ());
    TRY("this device, owner", cudaDeviceFlushGPUDirectRDMAWrites, (int, int), (0, 100));
    TRY("bad target", cudaDeviceFlushGPUDirectRDMAWrites, (int, int), (9, 100));
    TRY("bad scope", cudaDeviceFlushGPUDirectRDMAWrites, (int, int), (0, 9));
}

static void
peers_of_devices(void)
{
    const struct table_channel word = {32, 0, 0, 0, 2}, odd = {7, 0, 0, 0, 0};
    size_t width = 77;
    int value = 77;

    TRY("0 to 1", cudaDeviceCanAccessPeer, (int *, int, int), (&value, 0, 1));
    table_show("%d", value);
    TRY("0 to 0", cudaDeviceCanAccessPeer, (int *, int, int), (&value, 0, 0));
    table_show("%d", value);
    TRY("no place", cudaDeviceCanAccessPeer, (int *, int, int), (NULL, 0, 1));
    TRY("0 to 7", cudaDeviceCanAccessPeer, (int *, int, int), (&value, 0, 7));
    TRY("-1 to 0", cudaDeviceCanAccessPeer, (int *, int, int), (&value, -1, 0));
    TRY("itself", cudaDeviceEnablePeerAccess, (int, unsigned), (0, 0));
    TRY("device 7", cudaDeviceEnablePeerAccess, (int, unsigned), (7, 0));
    TRY("bad flags", cudaDeviceEnablePeerAccess, (int, unsigned), (1, 9));
    TRY("device 1", cudaDeviceEnablePeerAccess, (int, unsigned), (1, 0));
    TRY("again", cudaDeviceEnablePeerAccess, (int, unsigned), (1, 0));
    TRY("device 1", cudaDeviceDisablePeerAccess, (int), (1));
    TRY("again", cudaDeviceDisablePeerAccess, (int), (1));
    TRY("device 7", cudaDeviceDisablePeerAccess, (int), (7));
    TRY("access", cudaDeviceGetP2PAttribute, (int *, int, int, int), (&value, 2, 0, 1));
    table_show("%d", value);
    TRY("one device", cudaDeviceGetP2PAttribute, (int *, int, int, int), (&value, 2, 0, 0));
    TRY("device 7", cudaDeviceGetP2PAttribute, (int *, int, int, int), (&value, 2, 0, 7));
    TRY("bad", cudaDeviceGetP2PAttribute, (int *, int, int, int), (&value, 99, 0, 1));
    TRY("no place", cudaDeviceGetP2PAttribute, (int *, int, int, int), (NULL, 2, 0, 1));
    TRY("floats", cudaDeviceGetTexture1DLinearMaxWidth,
        (size_t *, const struct table_channel *, int), (&width, &word, 0));
    TRY("no channels", cudaDeviceGetTexture1DLinearMaxWidth,
        (size_t *, const struct table_channel *, int), (&width, NULL, 0));
    TRY("7 bits", cudaDeviceGetTexture1DLinearMaxWidth,
        (size_t *, const struct table_channel *, int), (&width, &odd, 0));
    TRY("device 7", cudaDeviceGetTexture1DLinearMaxWidth,
        (size_t *, const struct table_channel *, int), (&width, &word, 7));
    TRY("no list", cudaDeviceGetNvSciSyncAttributes, (void *, int, int), (NULL, 0, 1));
}

static void
flags_of_active_devices(void)
{
    unsigned flags = 77;
    int device = 77;

    QUIET(cudaSetDevice, (int), (0));
    QUIET(cudaFree, (void *), (NULL));
    TRY("active", cudaSetDeviceFlags, (unsigned), (4));
    TRY("active", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    TRY("active, bad", cudaSetDeviceFlags, (unsigned), (3));
    TRY("active, none", cudaSetDeviceFlags, (unsigned), (0));
    QUIET(cudaSetDevice, (int), (1));
    TRY("after a device", cudaSetValidDevices, (int *, int), (&(int){0}, 1));
    TRY("after a device and a list", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    QUIET(cudaFree, (void *), (NULL));
    TRY("active", cudaSetValidDevices, (int *, int), (&(int){0}, 1));
    TRY("active, after a list", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    QUIET(cudaSetDevice, (int), (0));
}

void
table_devices(void)
{
    int value = 77;

    TRY("plain", cudaDriverGetVersion, (int *), (&value));
    table_show("%d", value);
    TRY("no place", cudaDriverGetVersion, (int *), (NULL));
    TRY("plain", cudaRuntimeGetVersion, (int *), (&value));
    table_show("thousands %d", value / 1000);
    TRY("no place", cudaRuntimeGetVersion, (int *), (NULL));
    attributes_of_devices();
    properties_of_devices();
    addresses_of_devices();
    current_device();
    settings_of_devices();
    flags_of_active_devices();
    peers_of_devices();
    TRY("plain", cudaDeviceSynchronize, (void), ());
    TRY("old name", cudaThreadSynchronize, (void), ());
    TRY("plain", cudaDeviceReset, (void), ());
    TRY("again", cudaDeviceReset, (void), ());
    TRY("after a reset", cudaGetDevice, (int *), (&value));
    table_show("device %d", value);
    TRY("after a reset", cudaDeviceSynchronize, (void), ());
    TRY("old name", cudaThreadExit, (void), ());
}
