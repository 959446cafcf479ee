/* The machine's table for executors. See near.h. */
#include "driver/near/near.h"

void
hed_near_init(struct hed_near *n, const struct hed_executor *executor)
{
    n->executor = executor;
    n->machine = (struct hed_machine){
        .memory = executor->memory,
        .clusters = executor->clusters,
        .executor = executor,
        .forked = executor->forked,
        .fini = executor->fini,
    };
}
