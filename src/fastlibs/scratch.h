/* Memory for jobs that cannot fail any more when they run.
 *
 * Who puts a job into a stream reserves what the job will take, and can still refuse. When the job
 * runs, it takes the memory; if there is none left, it waits for another job to put its memory
 * back, which will be large enough for one of them. So a thread has one piece at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False: there is not that much memory. */
bool hed_scratch_reserve(size_t bytes);

/* At most as much as was reserved before. Aligned for vectors of any width. */
void *hed_scratch_take(size_t bytes);
void hed_scratch_put(void *p);

/* In the child of a fork: what the parent's jobs have taken does not come back. */
void hed_scratch_forked(void);
