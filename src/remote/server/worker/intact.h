/* Is an image intact? A driver gets a pointer without a length and believes the image's headers, so
 * no header may lead out of the image.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `image` has `size` bytes and a 0 after them. Compressed parts are not decompressed. `strict` is
 * for drivers that take some parts of an entry for granted; our own do not. */
bool hed_image_is_intact(const void *image, uint64_t size, bool strict);
