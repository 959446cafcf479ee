/* BLAKE2b with 256 bits (RFC 7693): a name for content, also between parties that do not trust each
 * other. This is the only hash of content in the tree.
 *
 *   struct hed_hash h;
 *   hed_hash_init(&h);
 *   hed_hash_add(&h, p, n);  as often as needed
 *   hed_hash_end(&h, name);  the state is used up
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HED_HASH_SIZE 32 /* bytes */

struct hed_hash {
    uint64_t state[8];
    uint64_t bytes; /* compressed so far; no content has 2^64 */
    size_t held;    /* bytes in block */
    uint8_t block[128];
};

void hed_hash_init(struct hed_hash *h);
void hed_hash_add(struct hed_hash *h, const void *p, size_t n);

/* Adds a text and its NUL, so that adding "ab" and "c" is not adding "a" and "bc". */
void hed_hash_add_text(struct hed_hash *h, const char *text);

void hed_hash_end(struct hed_hash *h, uint8_t out[HED_HASH_SIZE]);

/* The hash of one piece of content. */
void hed_hash_of(const void *p, size_t n, uint8_t out[HED_HASH_SIZE]);

/* As hexadecimal digits with a NUL. */
#define HED_HASH_TEXT (2 * HED_HASH_SIZE + 1)
const char *hed_hash_text(const uint8_t hash[HED_HASH_SIZE], char out[HED_HASH_TEXT]);
