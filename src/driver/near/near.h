/* Machines that execute in this process: the table of driver/machine.h on top of an executor.
 *
 *   driver ──struct hed_machine──> near/ ──struct hed_executor──> backends/cpu, the tests' fake
 *
 * An executor has memory, turns PTX into code and runs a grid. It knows nothing about streams,
 * contexts or the API; those are handled here.
 */
#pragma once

#include <pthread.h>

#include "driver/context/context.h"
#include "driver/machine.h"
#include "driver/stream/stream.h"
#include "kernel/engine.h"
#include "kernel/fatbin.h"

struct hed_condition;
struct hed_watcher;

enum hed_code_kind { HED_CODE_PTX, HED_CODE_CUBIN };

/* Code to be loaded. The bytes live as long as the code. */
struct hed_code_source {
    enum hed_code_kind kind;
    const void *data; /* need not be terminated */
    size_t size;
    uint32_t device; /* 10 * major + minor of the device's compute capability */
    uint32_t arch;   /* of the image: 75 for compute_75 */
};

/* What an executor provides. Its state begins with a struct hed_near, so that `m` is the same
 * pointer in both tables. Any thread may call an entry, several at once, with no lock held. No
 * entry may be NULL unless its comment says so. */
struct hed_executor {
    struct hed_machine_memory memory; /* addresses are pointers in this process */

    bool clusters; /* as in struct hed_machine */

    /* Does `open` take machine code for this architecture? Its kernels may be refused one by one,
     * by `prepare`. NULL: never. */
    bool (*takes_cubin)(struct hed_arch arch);

    /* Reads code. 0, or HED_EFORMAT (INVALID_PTX), HED_EVERSION, HED_ENOMEM, HED_ENOTSUP. `log`
     * (may be NULL) takes the text of the JIT's error log. */
    int (*open)(void *m, const struct hed_code_source *source, struct hed_code **out,
                struct hed_buf *log, struct hed_why *why);
    void (*close)(void *m, struct hed_code *code);

    /* Writes the variables' initial values, and the addresses inside them. Called for each context
     * that the code is loaded in, when all variables have memory. addresses[i] belongs to vars[i],
     * whose value is written to where[i], unless that is 0. */
    void (*fill_vars)(void *m, struct hed_code *code, const uint64_t *addresses,
                      const uint64_t *where);

    /* Compiles the kernel if that has not been done yet: at the first launch, by cuFuncLoad, or
     * when modules are loaded eagerly. `block` has the three dimensions of the blocks that will be
     * launched; NULL if they are not known. CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX,
     * ... with the reason. */
    CUresult (*prepare)(void *m, struct hed_code *code, uint32_t kernel, const uint32_t *block,
                        struct hed_why *why);

    /* Runs a grid of a prepared kernel to its end, on the calling thread and the executor's own
     * threads. Returns CUDA_SUCCESS or the kernel's (sticky) error: ILLEGAL_ADDRESS, ASSERT, ... */
    CUresult (*launch)(void *m, const struct hed_launch *l, struct hed_why *why);

    /* The calling thread will run work of a stream until runner_ends. With `again`, a function of
     * the program has run on it, which may have changed its signals. Both may be NULL. */
    void (*runner_begins)(void *m, bool again);
    void (*runner_ends)(void *m);

    /* Called in the child of a fork: forgets the parent's threads. May be NULL. */
    void (*forked)(void *m);
    /* The process ends: stops the executor's threads. May be NULL. */
    void (*fini)(void *m);
};

/* Which code of an image with both runs, on executors that run both. */
enum hed_near_prefers {
    HED_NEAR_AUTO, /* code.c says */
    HED_NEAR_PTX,
    HED_NEAR_SASS, /* machine code */
};

/* The first member of an executor's state. */
struct hed_near {
    struct hed_machine machine; /* for hed_driver_create(), together with the executor's state */
    const struct hed_executor *executor;
    enum hed_near_prefers prefers;
    _Atomic bool warned; /* of machine code that is not made for the device */
    struct hed_lock conditions_lock;
    struct hed_numbers conditions; /* of all graphs; changed under conditions_lock */
    struct hed_lock objects_lock;  /* for those of all contexts */
};

void hed_near_init(struct hed_near *n, const struct hed_executor *executor);
/* Needed only where the state is given back before the process ends. */
void hed_near_fini(struct hed_near *n);

/* Sets a condition, of a graph or of none any more; false if there is none. For kernels that
 * run. */
bool hed_near_condition_set(const struct hed_near *n, uint64_t handle, uint32_t value);

/* ---- between the files of near/ -------------------------------------------------------------- */

/* What a context has here. */
struct hed_near_context {
    struct hed_numbers objects; /* descriptors of textures and surfaces; under objects_lock */
};

static inline struct hed_near_context *
hed_near_context(const struct hed_context *c)
{
    return c->own;
}

/* The queue of a stream; guarded by the stream's lock. */
struct hed_near_stream {
    pthread_cond_t finished; /* done has reached wanted */
    pthread_cond_t filled;   /* for the runner: there is work, or the stream is destroyed */
    struct hed_work *first, **last;
    uint64_t wanted; /* the lowest number that a thread waits for; UINT64_MAX if none does */
    bool running;    /* work is running, on the runner or on a caller's thread */
    bool has_runner;
    /* For the runner, which may start when all work is done and the context is gone. */
    void *machine;
    const struct hed_executor *executor;
};

static inline struct hed_near_stream *
hed_near_stream(const struct hed_stream *s)
{
    return s->own;
}

/* queue.c: entries of the table. */
void hed_near_stream_init(void *m, struct hed_stream *s);
bool hed_near_stream_gone(void *m, struct hed_stream *s);
CUresult hed_near_stream_query(void *m, struct hed_stream *s);
CUresult hed_near_stream_wait(void *m, struct hed_stream *s);
CUresult hed_near_context_wait(void *m, struct hed_context *c);
bool hed_near_point_reached(void *m, struct hed_point p);
CUresult hed_near_point_wait(void *m, struct hed_point p);
CUresult hed_near_submit(void *m, struct hed_stream *s, struct hed_work *w, bool wait);

/* event.c: entries of the table. hed_near_event_reached() is called when a record has been reached,
 * and takes the time. Record 0 stands for a node in a running graph: it has a time but no point;
 * the point is that of the record that was put on the stream behind the graph. */
CUresult hed_near_event_query(void *m, struct hed_event *e);
CUresult hed_near_event_wait(void *m, struct hed_event *e);
CUresult hed_near_event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms);
void hed_near_event_reached(struct hed_event *e, uint64_t record);

/* work.c: entries of the table. */
CUresult hed_near_launch(void *m, struct hed_stream *s, const struct hed_launch *l);
CUresult hed_near_copy(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits);

/* graph.c: entries of the table. */
CUresult hed_near_graph_launch(void *m, struct hed_exec *e, struct hed_stream *s,
                               struct hed_graph_exec *body);

/* condition.c: entries of the table. */
CUresult hed_near_graph_condition(void *m, struct hed_context *ctx, uint64_t graph, unsigned value,
                                  unsigned flags, uint64_t *out);
void hed_near_graph_conditions_gone(void *m, uint64_t graph);
/* A graph is launched: conditions of it that have a value at first have it again. */
void hed_near_conditions_begin(struct hed_near *n, uint64_t graph);
/* The branch that a conditional node runs now: a number, which none may have. */
uint32_t hed_near_branch(const struct hed_near *n, const struct hed_condition *c);

/* code.c: entries of the table. */
CUresult hed_near_open(void *m, struct hed_device *dev, struct hed_program *p,
                       const struct hed_image *image, const struct hed_jit_how *how,
                       struct hed_why *why);
void hed_near_close(void *m, struct hed_program *p);
void hed_near_fill_vars(void *m, struct hed_program *p, const uint64_t *addresses,
                        const uint64_t *where);
CUresult hed_near_function_load(void *m, struct hed_function *f, const uint32_t *block,
                                struct hed_why *why);
void hed_near_module_load(void *m, struct hed_module *mod);

/* array.c: entries of the table. */
CUresult hed_near_array_made(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes);
CUresult hed_near_mipmap_made(void *m, struct hed_context *c, struct hed_mipmap *mm,
                              uint64_t bytes);
CUresult hed_near_array_quiesce(void *m, struct hed_context *c, const struct hed_allocation *a);
CUresult hed_near_texture_made(void *m, struct hed_context *c, const struct hed_texture *t,
                               const struct hed_texture_given *given, uint64_t *value);
CUresult hed_near_surface_made(void *m, struct hed_context *c, const struct hed_surface *s,
                               const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value);
uint64_t hed_near_object_key(void *m, const struct hed_context *c, bool surface, uint64_t value);
CUresult hed_near_object_gone(void *m, struct hed_context *c, bool surface, uint64_t value);

/* Runs the work now, on this thread. It is what was put on a stream, `of`, or a part of that. run.c
 */
CUresult hed_near_run(struct hed_work *w, const struct hed_work *of, struct hed_why *why);

/* tell.c: what has run, for who watches (core/activity.h). */
bool hed_near_is_told(const struct hed_work *w);
void hed_near_tell(struct hed_watcher *watcher, const struct hed_work *w, const struct hed_work *of,
                   uint64_t begin, uint64_t end);
