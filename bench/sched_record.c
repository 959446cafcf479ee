/* What does it cost to record a launch? A kernel of four arguments on the null backend, 1, 16 and
 * 256 launches before each wait: called directly, through the gate and through the queue, in turns.
 *
 * Prints `name value unit` lines: what a launch costs its thread (submit), what it costs until the
 * wait has returned (round), and what it costs all threads together (cpu). The best of some rounds,
 * because these machines are noisy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/null/null.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "layers/layers.h"
#include "sched/share.h"

#define ROUNDS 15
#define LAUNCHES 25600 /* a round */

struct cost {
    double submit, round, cpu; /* ns a launch */
};

/* Null knows no kernels: this one has four arguments of 8 bytes, and work is in some context. */
static CUresult
params_cuFuncGetParamInfo(struct hed_layer *self, struct hed_cuFuncGetParamInfo *a)
{
    if (a->paramIndex >= 4)
        return CUDA_ERROR_INVALID_VALUE;
    *a->paramOffset = 8 * a->paramIndex;
    *a->paramSize = 8;
    return CUDA_SUCCESS;
}

static CUresult
params_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    *a->pctx = (CUcontext)0x100;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops params_cuda = {
    .cuFuncGetParamInfo = params_cuFuncGetParamInfo,
    .cuCtxGetCurrent = params_cuCtxGetCurrent,
};

static const struct hed_layer_type params_type = {.name = "params", .cuda = &params_cuda};

static double
cpu_ns(void)
{
    return (double)hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static struct cost
measure(struct hed_layer *top, int per_wait)
{
    uint64_t values[4] = {1, 2, 3, 4};
    void *params[] = {&values[0], &values[1], &values[2], &values[3]};
    struct hed_cuLaunchKernel a = {
        (CUfunction)0x1000, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL, false};
    struct hed_cuCtxSynchronize wait = {0};
    const double cpu = cpu_ns();
    const uint64_t start = hed_now_ns();
    uint64_t waited = 0;

    for (int i = 0; i < LAUNCHES; i += per_wait) {
        for (int k = 0; k < per_wait; k++) {
            values[0] = (uint64_t)k;
            (void)top->cuda->cuLaunchKernel(top, &a);
        }

        const uint64_t begin = hed_now_ns();

        (void)top->cuda->cuCtxSynchronize(top, &wait);
        waited += hed_now_ns() - begin;
    }

    const double all = (double)(hed_now_ns() - start);

    return (struct cost){
        .submit = (all - (double)waited) / LAUNCHES,
        .round = all / LAUNCHES,
        .cpu = (cpu_ns() - cpu) / LAUNCHES,
    };
}

static void
keep_best(struct cost *best, struct cost c)
{
    best->submit = c.submit < best->submit ? c.submit : best->submit;
    best->round = c.round < best->round ? c.round : best->round;
    best->cpu = c.cpu < best->cpu ? c.cpu : best->cpu;
}

static void
forget_scope(const char *scope)
{
    const unsigned char uuid[16] = {0}; /* null's */
    char name[HED_SCHED_MEET_MAX];
    char path[200];

    hed_sched_meet_name(scope, uuid, name);
    snprintf(path, sizeof path, "/dev/shm/heddle-%u-%s", (unsigned)geteuid(), name);
    (void)unlink(path);
}

int
main(void)
{
    static const int waits[] = {1, 16, 256};
    static const char *const names[] = {"direct", "gate", "record"};
    static struct hed_config config; /* large */
    struct hed_layer *layers[3];     /* as the names */
    struct cost best[3][3];
    struct hed_why why = {""};
    char scope[32];

    snprintf(scope, sizeof scope, "bench%ld", (long)getpid());
    hed_config_init(&config);
    snprintf(config.sched, sizeof config.sched, "mode=record,scope=%s", scope);
    if (hed_layer_create(&hed_null_backend, NULL, &config, &layers[0], &why) ||
        hed_layer_create(&params_type, layers[0], &config, &layers[0], &why) ||
        hed_layer_create(&hed_sched_layer, layers[0], &config, &layers[1], &why) ||
        hed_layer_create(&hed_record_layer, layers[1], &config, &layers[2], &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    for (int w = 0; w < 3; w++)
        for (int l = 0; l < 3; l++)
            best[w][l] = (struct cost){1e9, 1e9, 1e9};
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < 3; w++)
            for (int l = 0; l < 3; l++)
                keep_best(&best[w][l], measure(layers[l], waits[w]));
    for (int w = 0; w < 3; w++) {
        for (int l = 0; l < 3; l++) {
            printf("launch/%s/%d/submit %.1f ns\n", names[l], waits[w], best[w][l].submit);
            printf("launch/%s/%d/round %.1f ns\n", names[l], waits[w], best[w][l].round);
            printf("launch/%s/%d/cpu %.1f ns\n", names[l], waits[w], best[w][l].cpu);
        }
    }
    hed_record_layer.fini(layers[2]);
    forget_scope(scope);
    return 0;
}
