/* Dominators, loops and the order of blocks: what flow.c asks graph.c for. */
#pragma once

struct hed_flow;

/* Given raw blocks with their successors: removes unreachable blocks, numbers the others in the
 * order of flow.h, and sets predecessors, dominators and loops. HED_ENOTSUP with the reason, or
 * HED_ENOMEM. */
int hed_flow_order(struct hed_flow *f, const char **why);
