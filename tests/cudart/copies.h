/* Copies, fills and pointers of the runtime API, with the contents of what was copied.
 *
 *     cudart_copies AREA...
 *
 * Prints what went wrong and ends with 1; 0 if nothing did. One program for each edition of the
 * library: it is built with EDITION, and takes the runtime that it is linked with or that
 * LD_LIBRARY_PATH has, ours or NVIDIA's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gen/cudart_abi.h"

#define ROOM 8192 /* bytes of each place */

/* A kind of memory, and a place in it. */
enum place_kind { PAGEABLE, PINNED, DEVICE, MANAGED, PLACES };

/* What copies are between: `to` is filled with 0xee before each of them. */
struct copies_places {
    unsigned char *from[PLACES], *to[PLACES];
    cudaStream_t stream;
};

extern struct copies_places copies;

void expect(bool holds, const char *what);
void expect_ok(cudaError_t r, const char *what);

/* The kind of a copy between two places. */
cudaMemcpyKind copies_kind(enum place_kind to, enum place_kind from);

/* The i-th byte of what is copied. */
unsigned char copies_byte(size_t i);

/* Fills a place with copies_byte(), or with 0xee. */
void copies_fill(unsigned char *place);
void copies_clear(unsigned char *place);

/* A place's contents. */
const unsigned char *copies_look(const unsigned char *place);

void copies_of_arrays(void);
void copies_of_symbols(void);
void managed_symbols(void);

cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaDeviceSynchronize(void);
