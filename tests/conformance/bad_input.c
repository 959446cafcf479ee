/* Bad input to every function: no crash, and an error if the pointer for an output is missing. Only
 * for the null backend, because NVIDIA's own driver follows some of these pointers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/cuda_front.h"
#include "gen/nvml_front.h"

static _Alignas(4096) char room[4 << 20]; /* stays zero, so that it contains no pointers */
static int failures;

/* Returning a pointer that was never handed out is the program's fault. */
static int
is_unfair(const char *name, int much)
{
    return much && strcmp(name, "cuMemFreeHost") == 0;
}

static void
judge(const char *name, int much, int needed, int result)
{
    if (!much && needed && result == 0) {
        printf("%s: success without a place for its output\n", name);
        failures++;
    }
    memset(room, 0, sizeof room);
}

#define TRY(name, much, needed, call) \
    if (!is_unfair(name, much))       \
        judge(name, much, needed, (int)(call));

int
main(void)
{
    const char *gpu = getenv("HEDDLE_GPU");

    if (!gpu || strcmp(gpu, "null") != 0) {
        printf("skipped: for the null backend only\n");
        return 77;
    }
    cuInit(0);
#include "bad_table.inc"
    return failures ? 1 : 0;
}
