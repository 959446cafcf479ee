/* Is this machine a guest of QEMU, and does its host serve GPUs? */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where a server on the host listens (remote/wire/transport.h). */
#define HED_LOCATE_HOST_PORT 7717

enum hed_guest_kind {
    HED_GUEST_NOT,     /* no sign of a hypervisor */
    HED_GUEST_UNKNOWN, /* a hypervisor that may be QEMU or not */
    HED_GUEST_QEMU
};

/* `root` comes before all paths: "", or a test's own folder. `maker` gets the name that the
 * firmware gives, or "". */
enum hed_guest_kind hed_locate_guest(const char *root, char *maker, size_t size);

/* Is there a vsock device? *driven: and a driver for it. */
bool hed_locate_vsock(const char *root, bool *driven);

/* Does a server listen on the host of this guest? Asks only if this is a guest of QEMU with a vsock
 * device: other hypervisors have something else at the other end. Waits for a second at most. */
bool hed_locate_host(const char *root);

/* The first line of a file below `root`; "" if there is none. Returns out. */
const char *hed_locate_read(const char *root, const char *name, char *out, size_t size);
