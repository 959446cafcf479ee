/* Is an image whole? What a driver gets is a pointer without a length, and it believes the image's
 * headers: none of them may lead out of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `size` bytes and a 0 behind them. What is packed is not unpacked for it. strict: for drivers that
 * take some parts of an entry for granted; ours do not. */
bool hed_image_is_intact(const void *image, uint64_t size, bool strict);
