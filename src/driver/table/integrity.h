/* The answer to NVIDIA's runtime when it asks whether the driver under it is sound.
 *
 * libcudart calls slot 1 of one of the driver's private tables with its own version and the time,
 * and compares the sixteen bytes it gets with those it computes itself from what it knows of the
 * driver: an HMAC (RFC 2104) over MD2 (RFC 1319). A wrong answer makes every runtime call fail with
 * cudaErrorSoftwareValidityNotEstablished.
 *
 * This is arithmetic only: who asks and where the facts come from is the tables' business.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What goes into the answer for each visible device, in visible order. */
struct hed_integrity_device {
    uint8_t uuid[16];
    int32_t pci_domain;
    int32_t pci_bus;
    int32_t pci_device;
};

struct hed_integrity {
    uint32_t driver_version;  /* what cuDriverGetVersion says */
    uint32_t version;         /* the argument: the runtime's version plus 0, 1 or 2 */
    uint32_t process;         /* getpid() */
    uint32_t thread;          /* low half of pthread_self() */
    uint64_t interface_table; /* address of the runtime's interface table, as handed out */
    uint64_t integrity_table; /* address of the integrity table */
    uint64_t function;        /* what slot 1 of that table holds */
    uint64_t seconds;         /* the argument: Unix time */
    const struct hed_integrity_device *devices;
    size_t device_count;
};

void hed_integrity_answer(const struct hed_integrity *in, uint8_t out[16]);

/* MD2 of some bytes; here for its test vectors. */
void hed_md2(const void *p, size_t n, uint8_t out[16]);
