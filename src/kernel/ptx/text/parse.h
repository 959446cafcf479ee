/* Reads PTX text into a checked module.
 *
 *     struct hed_ptx_module m;
 *
 *     hed_ptx_module_init(&m, HED_PTX_CEILING);
 *     if (hed_ptx_parse(&m, text, size) != 0)
 *         hed_ptx_log(&m, log);
 *     ...
 *     hed_ptx_module_fini(&m);
 */
#pragma once

#include <stddef.h>

struct hed_buf;
struct hed_ptx_module;

/* The most bytes that a module may take. A model takes 4 to 8 times as much as its text. */
#define HED_PTX_CEILING ((size_t)2 << 30)

/* Allocates nothing yet. */
void hed_ptx_module_init(struct hed_ptx_module *m, size_t ceiling);

/* Parses and checks a module. The text need not be terminated, ends at a 0 byte, and is not needed
 * afterwards. HED_EFORMAT if there are errors, HED_ELIMIT or HED_ENOMEM if it takes too much
 * memory; m->errors then holds what was found, and nothing else in m is valid. Call it once per
 * init.
 */
int hed_ptx_parse(struct hed_ptx_module *m, const char *text, size_t size);

/* Appends the errors as lines, in the words of NVIDIA's assembler where it has such an error. */
void hed_ptx_log(const struct hed_ptx_module *m, struct hed_buf *log);

void hed_ptx_module_fini(struct hed_ptx_module *m);
