/* Text: reading numbers, copying, trimming, escaping. Independent of the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_buf;

/* The parsers take the whole string, no sign and no blanks: HED_EINVAL for what they cannot read,
 * HED_ERANGE for what does not fit. *out is untouched on failure.
 */

/* Decimal ("010" is ten) or, with 0x, hexadecimal. */
int hed_parse_u64(const char *s, uint64_t *out);

/* Bytes: "4096", "512k", "1.5M", "20G", "2T", any case, and "MB" or "MiB" for "M". Units are
 * powers of 1024. A fraction needs a unit, has at most 18 digits, and is rounded down to a byte.
 */
int hed_parse_size(const char *s, uint64_t *out);

/* on/off, true/false, yes/no, 1/0, in any case. */
int hed_parse_bool(const char *s, bool *out);

/* Copies src to dst[size], cut to fit and terminated unless size is 0. Did all of it fit? */
bool hed_str_copy(char *dst, size_t size, const char *src);

/* A path behind its last slash; all of it if there is none. */
const char *hed_str_base_name(const char *path);

/* Cuts blanks off the end of s, in place, and returns a pointer to the first other character. */
char *hed_str_trim(char *s);

/* Are n bytes the same? For secrets: it always compares all, so that the time reveals nothing. */
bool hed_same_secret(const void *a, const void *b, size_t n);

/* Appends n bytes as the inside of a JSON string: quotes, backslashes and control characters
 * and what changes the direction of text escaped, other valid UTF-8 unchanged, and U+FFFD for each
 * byte that is not part of valid UTF-8.
 */
void hed_str_escape(struct hed_buf *b, const char *s, size_t n);

/* Appends "key":"n bytes, escaped", for JSON objects. */
void hed_str_field(struct hed_buf *b, const char *key, const char *s, size_t n);

/* The same behind another field, of a whole string. */
void hed_str_next_field(struct hed_buf *b, const char *key, const char *s);

/* The value of a hexadecimal digit; 16 if it is none. */
int hed_str_digit(char c);

/* FNV-1a of n characters, for tables of names. Not for names that an attacker chooses. */
static inline uint32_t
hed_str_hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h;
}
