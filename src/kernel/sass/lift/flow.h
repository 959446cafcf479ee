/* Following the flow of a kernel: what flow.c and shared.c share. See inside.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lift;

/* A call, or a return, of a subroutine that has one copy. */
struct flow_tie {
    uint32_t place;   /* of a call: the instruction behind it; of a return: its node */
    uint32_t context; /* of a call */
    uint32_t next;    /* 1 + the one before of the same subroutine and kind, or 0 */
};

struct flow_maker {
    struct lift *l;
    uint32_t *slots; /* a hash table of nodes: 1 + node, or 0 */
    uint32_t mask;
    uint64_t copied; /* instructions in all nodes */
    uint32_t edges;  /* of all nodes */
    bool recursion;  /* subroutines call themselves, or each other very deeply */
    bool unclear;    /* subroutines cannot have one copy each: a return may not know its way */

    /* shared.c */
    uint32_t
        *context_of;     /* by instruction: the context of the subroutine that begins there, or 0 */
    uint32_t *caller_of; /* by instruction: 1 + the context in which it calls, or 0 */
    struct flow_tie *ties;
    uint32_t tie_count, tie_room;
};

/* ---- flow.c ---------------------------------------------------------------------------------- */

/* An instruction, in a context, can follow a node. Sets l->err if there are too many of them. */
void hed_flow_add_next(struct flow_maker *m, uint32_t node, uint32_t inst, uint32_t context);
/* A new context: a number; 0 if there is no memory. */
uint32_t hed_flow_add_context(struct flow_maker *m, uint32_t parent, uint32_t callee,
                              uint32_t back);
/* An instruction that follows another; LIFT_NONE if it is in another section. */
uint32_t hed_flow_stay_inside(const struct lift *l, uint32_t from, uint32_t to);

/* ---- shared.c -------------------------------------------------------------------------------- */

/* False if there is no memory. */
bool hed_flow_share_init(struct flow_maker *m);
void hed_flow_share_fini(struct flow_maker *m);
/* The node ends with a call of a subroutine, or with a return from one. */
void hed_flow_share_call(struct flow_maker *m, uint32_t node, uint32_t to, uint32_t back);
void hed_flow_share_return(struct flow_maker *m, uint32_t node);
/* Sorts the places that returns go to, and says whether there is a recursion. */
void hed_flow_share_end(struct flow_maker *m);
