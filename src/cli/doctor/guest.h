/* What the doctor knows about this machine as a guest. Facts and findings are apart, so that tests
 * can make both. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "locate/guest.h"
#include "remote/remote.h"

struct hed_doctor;

#define HED_DOCTOR_WINDOWS 8

struct hed_guest_facts {
    enum hed_guest_kind kind;
    char maker[64]; /* what the firmware calls the machine's maker; "" if unknown */

    bool has_vsock;    /* the guest has a vsock device of virtio */
    bool vsock_driven; /* and a driver for it */
    bool was_asked;    /* the host, for a connection */
    int answer;        /* 0, or HED_E...: why there is none */
    char reason[256];  /* the same, for people */

    int windows; /* ivshmem devices, of which at most HED_DOCTOR_WINDOWS are here */
    struct hed_window_device window[HED_DOCTOR_WINDOWS];
    struct hed_guest_file {
        bool is_open;    /* this user may read and write it */
        mode_t mode;     /* permissions */
        char group[32];  /* its name, or its number */
        bool is_of_root; /* the group */
    } file[HED_DOCTOR_WINDOWS];
    char lockdown[24]; /* the kernel's mode, if it is locked down; or "" */
};

/* Looks at the machine whose files are below `root` (""). Connects to nothing. */
void hed_guest_look(const char *root, struct hed_guest_facts *f);

/* Adds findings. `wanted`: programs of this user are to use vm:. */
void hed_guest_report(struct hed_doctor *d, const struct hed_guest_facts *f, bool wanted);
