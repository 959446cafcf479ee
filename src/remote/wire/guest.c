/* The window as a guest sees it: a PCI device that any kernel lists in /sys. See window.h.
 *
 * The BAR is mapped write-combined where the kernel offers that (resource2_wc): the plain file is
 * device memory on some machines, where unaligned accesses are errors and every access is slow.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "remote/wire/window.h"

#define DEVICES "/sys/bus/pci/devices"
#define VENDOR "0x1af4" /* as the kernel writes them: Red Hat, Inter-VM shared memory */
#define DEVICE "0x1110"
#define PATH 256
#define DEVICES_MOST 8 /* that are looked at */

static void
device_path(const char *root, const char *slot, const char *file, char out[PATH])
{
    (void)snprintf(out, PATH, "%s" DEVICES "/%s/%s", root, slot, file);
}

static bool
has_number(const char *root, const char *slot, const char *file, const char *number)
{
    char path[PATH], text[16];

    device_path(root, slot, file, path);

    return strncmp(hed_read_small(path, text, sizeof text), number, strlen(number)) == 0;
}

/* Opens BAR 2. Returns the descriptor, or an error. */
static int
open_bar(const char *root, const char *slot, uint64_t *size)
{
    static const char *const files[] = {"resource2_wc", "resource2"};
    char path[PATH];
    struct stat st;
    int err = HED_ENOTFOUND;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        device_path(root, slot, files[i], path);

        const int fd = open(path, O_RDWR | O_CLOEXEC);

        if (fd >= 0 && fstat(fd, &st) == 0) {
            *size = (uint64_t)st.st_size;
            return fd;
        }
        if (fd >= 0)
            (void)close(fd);
        else if (errno == EACCES || errno == EPERM)
            return HED_EACCESS; /* not the other file, which would be slower without a word */
        else
            err = hed_err_from_errno(errno);
    }
    return err;
}

/* Reads the header in whole words: it may be device memory. */
static int
read_header(int fd, struct hed_window_header *out)
{
    uint64_t words[sizeof *out / sizeof(uint64_t)];
    const _Atomic uint64_t *p = mmap(NULL, HED_WINDOW_UNIT, PROT_READ, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) /* a locked down kernel lets nobody map BARs */
        return errno == EPERM ? HED_EACCESS : hed_err_from_errno(errno);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) /* relaxed: it does not change */
        words[i] = atomic_load_explicit(&p[i], memory_order_relaxed);
    (void)munmap((void *)(uintptr_t)p, HED_WINDOW_UNIT);
    memcpy(out, words, sizeof *out);
    out->name[sizeof out->name - 1] = '\0';
    if (memcmp(out->magic, HED_WINDOW_MAGIC, sizeof out->magic) != 0)
        memset(out, 0, sizeof *out);
    return 0;
}

_Static_assert(sizeof(struct hed_window_header) % sizeof(uint64_t) == 0, "it is read in words");

static void
describe_window_device(const char *root, const char *slot, struct hed_window_device *d)
{
    int fd;

    memset(d, 0, sizeof *d);
    (void)hed_str_copy(d->slot, sizeof d->slot, slot);
    fd = open_bar(root, slot, &d->size);
    d->error = fd < 0 ? fd : read_header(fd, &d->header);
    if (fd >= 0)
        (void)close(fd);
}

int
hed_window_devices(const char *root, struct hed_window_device *out, int room)
{
    char path[PATH];
    const struct dirent *e;
    int count = 0;

    (void)snprintf(path, sizeof path, "%s" DEVICES, root);

    DIR *all = opendir(path);

    while (all && (e = readdir(all))) {
        if (e->d_name[0] == '.' || strlen(e->d_name) >= HED_WINDOW_SLOT ||
            !has_number(root, e->d_name, "vendor", VENDOR) ||
            !has_number(root, e->d_name, "device", DEVICE))
            continue;
        if (count < room)
            describe_window_device(root, e->d_name, &out[count]);
        count++;
    }
    if (all)
        (void)closedir(all);
    return count;
}

int
hed_window_check_name(const char *root, const char *name, struct hed_why *why)
{
    struct hed_window_device devices[DEVICES_MOST];
    const int there = hed_window_devices(root, devices, DEVICES_MOST);
    const char *other = NULL;

    for (int i = 0; i < there && i < DEVICES_MOST; i++) {
        const struct hed_window_header *h = &devices[i].header;

        if (devices[i].error || !h->magic[0])
            continue;
        if (strcmp(h->name, name) == 0)
            return 0;
        other = h->name;
    }
    if (!other)
        return 0;
    hed_why_set(why, "this guest is '%s' for its host: use vm:%s, or vm:", other, other);
    return HED_ENOTFOUND;
}

int
hed_window_open(const char *root, const uint8_t id[16], struct hed_window *out, struct hed_why *why)
{
    struct hed_window_device devices[DEVICES_MOST];
    const int there = hed_window_devices(root, devices, DEVICES_MOST);
    int err = HED_ENOTFOUND;

    for (int i = 0; i < there && i < DEVICES_MOST; i++) {
        const struct hed_window_device *d = &devices[i];
        uint64_t size = 0;

        if (d->error)
            err = d->error;
        if (d->error || memcmp(d->header.id, id, sizeof d->header.id) != 0)
            continue;

        const int fd = open_bar(root, d->slot, &size);

        if (fd < 0)
            return fd;
        *out = (struct hed_window){.fd = fd, .size = size};
        memcpy(out->id, id, sizeof out->id);
        return 0;
    }
    hed_why_set(why, "%s",
                err == HED_EACCESS ? "this user may not map the device (see `heddle doctor`)"
                : there            ? "none of the ivshmem devices is the host's window"
                                   : "there is no ivshmem device");
    return err;
}
