/* PTX text in, a checked module out.
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

/* Bytes a module may take. A model takes 4 to 8 times its text. */
#define HED_PTX_CEILING ((size_t)2 << 30)

/* Allocates nothing yet. */
void hed_ptx_module_init(struct hed_ptx_module *m, size_t ceiling);

/* Parses and checks a module; the text need not be terminated and is not needed afterwards, a 0 in
 * it ends it. HED_EFORMAT when there are errors, HED_ELIMIT or HED_ENOMEM when it took too much; in
 * both cases m->errors says what was found, and all else in m means nothing. Only once for an init.
 */
int hed_ptx_parse(struct hed_ptx_module *m, const char *text, size_t size);

/* Appends the errors as lines, in the words of NVIDIA's assembler where it has any. */
void hed_ptx_log(const struct hed_ptx_module *m, struct hed_buf *log);

void hed_ptx_module_fini(struct hed_ptx_module *m);
