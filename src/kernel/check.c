/* Makes kernels ready to run, says why one is refused, and explains how one runs. */
#include <stdio.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "kernel/inside.h"
#include "kernel/ptx/pass/explain.h"
#include "kernel/ptx/run/layout.h"

#define EXPLANATION_MAX 65536 /* bytes */

static int
make_program(const struct heddle_image *image, struct hed_image_kernel *k)
{
    const struct hed_ptx_refusal *r = k->func->refused;

    if (r) {
        hed_why_set(&k->why, "%s: '%s' (function %s, line %u)", r->why, r->text, r->func->name,
                    r->line);
        return HED_ENOTSUP;
    }
    return hed_interp_create(&image->module, k->func, &k->program, &k->why);
}

const struct hed_interp *
hed_image_program(struct heddle_image *image, struct hed_image_kernel *k, int *err)
{
    const struct hed_interp *program;

    hed_lock(&image->lock);
    if (!k->program && !k->err)
        k->err = make_program(image, k);
    program = k->program;
    *err = k->err;
    hed_unlock(&image->lock);
    return program;
}

int
heddle_image_check(struct heddle_image *image, int kernel, struct heddle_why *why)
{
    struct hed_image_kernel *k = hed_image_kernel_of(image, kernel);
    int err;

    if (!k)
        return hed_image_fail(why, HEDDLE_INVALID, 0, "there is no such kernel");
    if (hed_image_program(image, k, &err))
        return 0;
    return hed_image_fail(why, hed_image_error(err), 0,
                          k->why.text[0] ? k->why.text : hed_err_text(err));
}

/* ---- explaining ------------------------------------------------------------------------------ */

static void
list_loops(const struct hed_explain *e, struct hed_buf *out)
{
    for (uint32_t i = 0; i < e->nloops; i++) {
        const struct hed_explain_loop *l = &e->loops[i];

        hed_buf_addf(out, "loop         lines %u to %u%s%s\n", l->first, l->last,
                     l->leaves_singly ? ", lanes leave it one by one" : "",
                     l->is_solo ? ", it runs lane by lane" : "");
    }
}

static void
explain_kernel(const struct hed_explain *e, struct hed_buf *out)
{
    if (e->why)
        hed_buf_addf(out, "masks        cannot be fixed before it runs: %s\n", e->why);
    if (!e->nlines)
        return;
    hed_buf_addf(out, "instructions %u once for a warp, %u once for a row, %u for each lane\n",
                 e->ways[HED_ONCE], e->ways[HED_PER_ROW], e->ways[HED_PER_LANE]);
    hed_buf_addf(out,
                 "memory       %u of one address, %u of consecutive elements, %u at a fixed "
                 "distance, %u at known distances, %u anywhere\n",
                 e->accesses[HED_ACCESS_ONE], e->accesses[HED_ACCESS_ROW],
                 e->accesses[HED_ACCESS_STEPS], e->accesses[HED_ACCESS_OFFSETS],
                 e->accesses[HED_ACCESS_ANYWHERE]);
    hed_buf_addf(out, "lanes        part at %u branches\n", e->partings);
    hed_buf_addf(out, "barriers     %u, of which some lanes do not reach %u\n", e->barriers,
                 e->splits);
    list_loops(e, out);
}

/* Appends the text. HED_E. */
static int
explain_to(struct heddle_image *image, struct hed_image_kernel *k, const uint32_t threads[3],
           struct hed_buf *out)
{
    char name[HED_DEMANGLED_MAX];
    struct hed_explain e;
    struct hed_ptx_unit unit;
    int refused, err;

    hed_buf_addf(out, "kernel       %s\n", hed_demangle(k->name, name, sizeof name));
    if (!hed_image_program(image, k, &refused))
        hed_buf_addf(out, "refused      %s\n",
                     k->why.text[0] ? k->why.text : hed_err_text(refused));
    if (!k->func)
        return 0;
    hed_buf_addf(out, "shared       %u bytes\n", k->shared);
    err = hed_ptx_unit_init(&unit, &image->module, k->func);
    if (err)
        return err;
    err = hed_explain_init(&e, &unit, k->func, hed_rows_of(threads));
    if (!err)
        explain_kernel(&e, out);
    hed_explain_fini(&e);
    hed_ptx_unit_fini(&unit);
    return err;
}

int
heddle_image_explain(struct heddle_image *image, int kernel, const uint32_t threads[3], char *out,
                     size_t room)
{
    static const uint32_t usual[3] = {256, 1, 1};
    struct hed_image_kernel *k = hed_image_kernel_of(image, kernel);
    struct hed_buf text;
    int err, size;

    if (!k || (!out && room))
        return HEDDLE_INVALID;
    hed_buf_init(&text, EXPLANATION_MAX);
    err = explain_to(image, k, threads ? threads : usual, &text);
    if (!err)
        err = text.err;
    size = err ? hed_image_error(err) : (int)text.size;
    if (!err && room)
        (void)snprintf(out, room, "%s", hed_buf_cstr(&text));
    hed_buf_fini(&text);
    return size;
}
