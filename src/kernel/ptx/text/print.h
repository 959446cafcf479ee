/* Prints a module as PTX text: in the same order and with the same names, without comments and
 * debug sections. Parsing the result gives the same module, and so the same text.
 */
#pragma once

struct hed_buf;
struct hed_ptx_inst;
struct hed_ptx_module;

void hed_ptx_print(const struct hed_ptx_module *m, struct hed_buf *b);

/* One instruction without its end of line, for messages. */
void hed_ptx_print_inst(const struct hed_ptx_inst *i, struct hed_buf *b);
