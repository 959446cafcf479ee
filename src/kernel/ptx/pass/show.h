/* The result of the passes as text, for people: ptx_compile --after=PASS. */
#pragma once

struct hed_buf;
struct hed_flow;
struct hed_uniforms;

/* Appends blocks, edges, loops and instructions; with the classes of values if u is not NULL. */
void hed_flow_show(const struct hed_flow *f, const struct hed_uniforms *u, struct hed_buf *out);
