/* The lift layer: machine code of another architecture reaches the driver as PTX.
 *
 *   a call that loads an image --image.c--> does the device run anything in it? then it goes on as
 *                                           it is
 * --image.c--> else the best machine code in it, lifted (src/kernel/sass)
 *                              --lift.c---> the same call with the text and the same options
 *
 * The driver compiles the text and never learns of the machine code. Nothing else in a program
 * changes: names of kernels and variables, parameters and values are those of the machine code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_buf;
struct hed_bytes;
struct hed_layer_type;

extern const struct hed_layer_type hed_lift_layer;

/* Each of these appends PTX to `ptx` and returns true if the image has nothing for the device (10 *
 * major + minor of its compute capability), and something that can be lifted. Otherwise the image
 * goes on as it is: what is wrong with it, the driver says best. */

/* By pointer, as the program passes it; its length is trusted as CUDA trusts it. */
bool hed_relift_memory(const void *image, uint32_t device, struct hed_buf *ptx);
bool hed_relift_bytes(struct hed_bytes image, uint32_t device, struct hed_buf *ptx);
bool hed_relift_file(const char *path, uint32_t device, struct hed_buf *ptx);
