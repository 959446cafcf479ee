/* The answer to NVIDIA's runtime when it checks whether the driver under it is genuine.
 *
 * libcudart calls slot 1 of one of the driver's private tables with its own version and the time.
 * It compares the sixteen bytes that it gets with those that it computes itself from what it knows
 * about the driver: an HMAC (RFC 2104) over MD2 (RFC 1319). After a wrong answer every runtime call
 * fails with cudaErrorSoftwareValidityNotEstablished.
 *
 * This is arithmetic only; tables.c collects the inputs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The input for each visible device, in visible order. */
struct hed_integrity_device {
    uint8_t uuid[16];
    int32_t pci_domain;
    int32_t pci_bus;
    int32_t pci_device;
};

struct hed_integrity {
    uint32_t driver_version;  /* the answer of cuDriverGetVersion */
    uint32_t version;         /* the argument: the runtime's version plus 0, 1 or 2 */
    uint32_t process;         /* getpid() */
    uint32_t thread;          /* low half of pthread_self() */
    uint64_t interface_table; /* address of the runtime's interface table, as handed out */
    uint64_t integrity_table; /* address of the integrity table */
    uint64_t function;        /* the contents of slot 1 of that table */
    uint64_t seconds;         /* the argument: Unix time */
    const struct hed_integrity_device *devices;
    size_t device_count;
};

void hed_integrity_answer(const struct hed_integrity *in, uint8_t out[16]);

/* MD2 of n bytes; declared here so that it can be tested. */
void hed_md2(const void *p, size_t n, uint8_t out[16]);
