/* Windows: memory that a QEMU guest and its host share (the device ivshmem-plain).
 *
 *   host:   a file in /dev/shm ──mmap──> worker
 *             │ QEMU shows it to the guest as BAR 2 of a PCI device
 *   guest:  /sys/bus/pci/devices/.../resource2_wc ──mmap──> program
 *
 *   0 ┌────────┐ HED_WINDOW_UNIT ┌───────────────────┬──────────┬─── ... ┐ size
 *     │ header │                 │ rings of a channel│ pinned   │  free   │
 *     └────────┘                 └───────────────────┴──────────┴─────────┘
 *
 * The host decides which piece is for what: the listener keeps the map (listener/guests.h), and a
 * worker tells its client where a piece begins. The header only lets a guest recognise the device.
 * Nothing that the host needs to know is read from the window, because the guest can write it.
 */
#pragma once

#include <stdint.h>

struct hed_address;
struct hed_buf;
struct hed_why;

#define HED_WINDOW_MAGIC "HEDDLEVM"
#define HED_WINDOW_VERSION 1
#define HED_WINDOW_UNIT (UINT64_C(64) << 10) /* bytes; the largest page size */
#define HED_WINDOW_LEAST (UINT64_C(32) << 20)
#define HED_WINDOW_MOST (UINT64_C(1) << 40)
#define HED_WINDOW_USUAL (UINT64_C(1) << 30)
#define HED_WINDOW_NAME 48

struct hed_window_header { /* at the beginning of the window; written by the host */
    char magic[8];
    uint32_t version;
    uint32_t reserved; /* 0 */
    uint8_t id[16];    /* random: by it a guest finds the device that its worker means */
    uint64_t size;     /* bytes of the window */
    char name[HED_WINDOW_NAME];
};

/* What a process has of a window. */
struct hed_window {
    int fd; /* the host's file, or the guest's BAR; -1: there is no window */
    uint64_t size;
    uint8_t id[16];
    /* Worker: takes and gives back a piece of a multiple of HED_WINDOW_UNIT bytes. `take` returns 0
     * if there is no such piece left; no piece begins at 0. Any thread may call them. */
    uint64_t (*take)(void *arg, uint64_t bytes);
    void (*give)(void *arg, uint64_t offset, uint64_t bytes);
    void *arg;
};

/* ---- in the guest: guest.c ------------------------------------------------------------------- */

#define HED_WINDOW_SLOT 16 /* "0000:00:05.0" */

struct hed_window_device { /* an ivshmem device of this machine */
    char slot[HED_WINDOW_SLOT];
    uint64_t size;                   /* of BAR 2 */
    int error;                       /* 0, or why it cannot be used: HED_EACCESS, ... */
    struct hed_window_header header; /* if there is no error; all zeros if it is not heddle's */
};

/* Lists the ivshmem devices of this machine, whoever they belong to. Returns how many there are;
 * at most `room` are written. `root` comes before all paths: "", or a test's own folder. */
int hed_window_devices(const char *root, struct hed_window_device *out, int room);

/* May this guest be the one of that name? HED_ENOTFOUND, with the reason, if its window has another
 * name; 0 also if that cannot be told, because there is no window that this user may read. */
int hed_window_check_name(const char *root, const char *name, struct hed_why *why);

/* Opens the window with this id. The descriptor can be mapped. HED_ENOTFOUND, HED_EACCESS, ... */
int hed_window_open(const char *root, const uint8_t id[16], struct hed_window *out,
                    struct hed_why *why);

/* A guest without a vsock reaches its host over the network, if at all: the host of a user network
 * is its default gateway. Turns a vm: address without a name into one of TCP, from the kernel's
 * table of routes ("/proc/net/route"). HED_ENOTFOUND if there is no gateway. */
int hed_vm_gateway(const char *routes, struct hed_address *a);

/* ---- on the host ----------------------------------------------------------------------------- */

#define HED_VM_PATH 108
/* Where QEMU finds the guest of this name: the socket for its vhost-user device, and the file of
 * its window. They depend on the user that runs the server. HED_EINVAL if there is no folder for
 * them. */
int hed_vm_paths(const char *name, char socket[HED_VM_PATH], char window[HED_VM_PATH],
                 struct hed_why *why);

#define HED_VM_RAM (UINT64_C(2) << 30) /* of a guest, if the user does not say */
/* Appends QEMU's options for a guest with so much RAM, each followed by `end`. Without a window its
 * size is 0. HED_EINVAL if a path cannot be a word of a shell. */
int hed_vm_qemu_options(struct hed_buf *b, const char *socket, const char *window, uint64_t size,
                        uint64_t ram, const char *end);
/* Appends bytes as QEMU and hed_parse_size() read them: "512M", "1G". */
void hed_vm_qemu_size(struct hed_buf *b, uint64_t bytes);
