/* Names of C++ functions as people write them: `ns::scale<float, 4>` for
 * `_ZN2ns5scaleIfLi4EEEvPT_i`.
 *
 * Reads the names that g++, clang and nvcc give to functions (Itanium C++ ABI, chapter 5), without
 * the parameters and the result of the function itself. What it does not know, such as expressions
 * in template arguments, leaves the whole name as it is.
 */
#pragma once

#include <stddef.h>

#define HED_DEMANGLED_MAX 512 /* bytes that are enough for most names */

/* Returns `out`, which holds the readable name, cut to fit if it must be ("..." at the end).
 * Returns `name` if that is not a mangled name or cannot be read. */
const char *hed_demangle(const char *name, char *out, size_t size);
