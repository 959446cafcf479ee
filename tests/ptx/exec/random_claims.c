/* Runs random kernels in the baseline tier, and compares the numbers that values have with what the
 * compiler claims of them: pass/uniform.h, pass/bounds.h and, in a loop that would run in its
 * second version, pass/guess.h.
 *
 *   ptx_claims [--seed S] [--count N] [--seconds N] [--show]
 *
 * Nothing is compiled, so this is a hundred times as fast as ptx_random, and a claim need not have
 * consequences to be found. What is made of right claims is for ptx_random. With --show, the values
 * of a kernel in which one is wrong are printed, and its text.
 *
 * Each instruction is on a line of its own, so a line is one write of each value. When the machine
 * comes to another line, all registers that the instruction writes have their numbers.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/number.h"
#include "kernel/ptx/interp/inside.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/pass/guess.h"
#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/pass/show.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/uniform.h"
#include "ptx/exec/harness.h"
#include "ptx/exec/random_kernel.h"

#define LINES_MAX 20000u
#define FUEL 1000 /* is never used up: no loop waits, so lanes stay together */

static struct {
    const struct hed_ptx_func *func;
    struct hed_flow flow;
    struct hed_ssa ssa;
    struct hed_uniforms u;
    uint32_t *places;                      /* of registers, in a frame of the baseline tier */
    interp_run **runs;                     /* what steps really run, by function and step */
    bool *is_unwritten;                    /* by register: those that free moves would write */
    struct hed_ptx_inst *insts[LINES_MAX]; /* by line */
    uint32_t begins[LINES_MAX];            /* by line: 1 + the block that begins there */
    struct hed_guess **guesses;            /* by loop */
    uint64_t checked, guessed;             /* values; blocks of guessed loops */
    char wrong[400];                       /* the first claim that is wrong; or "" */
} now;

/* Where lanes are, of the warp that runs. */
static struct {
    struct hed_ptx_warp *warp;
    uint32_t line; /* 0: none that was looked at */
    uint32_t lanes;
    unsigned char *registers;
    uint32_t block; /* of the line; or NONE */
    uint32_t loop;  /* that runs in its second version; or NONE */
} at;

/* What is claimed here. */
static const struct hed_uniforms *
claims_here(void)
{
    return at.loop == HED_FLOW_NONE ? &now.u : &now.guesses[at.loop]->u;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* A value, and what it is in each lane. */
struct look {
    const struct hed_uniform *class;
    uint64_t numbers[HED_PTX_LANES], all; /* all: the bits of its width */
    unsigned first;                       /* lane that runs */
    unsigned bits, bound;
};

static uint64_t
read_lane(const struct hed_ptx_reg *v, uint32_t place, unsigned lane)
{
    const unsigned bytes = interp_bytes(v->type);
    uint64_t x = 0;

    if (bytes) {
        memcpy(&x, at.registers + place + lane * bytes, bytes);
        return x;
    }
    memcpy(&x, at.registers + place, 4);
    return x >> lane & 1;
}

/* What the lane has more than the first of its row, if that is claimed. */
static uint64_t
claimed_distance(const struct hed_uniform *c, unsigned lane)
{
    return (uint64_t)(c->kind == HED_OFFSETS ? c->offsets->lanes[lane]
                                             : c->step * (int64_t)(lane % now.u.width));
}

/* Which claim is wrong in a lane, or NULL. */
static const char *
wrong_claim(const struct look *k, unsigned lane)
{
    const struct hed_uniform *c = k->class;
    const bool has_steps = c->kind == HED_OFFSETS || c->kind == HED_ROWS;
    const unsigned row = k->first / now.u.width == lane / now.u.width ? k->first : lane;
    const uint64_t x = k->numbers[lane], below = (UINT64_C(1) << hed_min(c->align, 63)) - 1;
    const uint64_t distance = has_steps ? claimed_distance(c, lane) : 0;

    if (k->bits > 1 && k->bound < 64 && x >> k->bound)
        return "the bound";
    if (c->is_constant && x != (c->constant & k->all))
        return "the constant";
    if (c->kind == HED_UNIFORM && x != k->numbers[k->first])
        return "being uniform";
    if (c->wraps != HED_FLOW_NONE || k->bits == 1)
        return NULL;
    if (has_steps && ((x - distance) ^ (k->numbers[row] - claimed_distance(c, row))) & k->all)
        return "the distance";
    if (c->kind != HED_VARIES && !c->is_constant && (x - distance) & below & k->all)
        return "the unit";
    if ((x ^ k->numbers[k->first]) & hed_class_same(&now.u, *c) & k->all)
        return "the same bits";
    return NULL;
}

/* Local addresses are offsets in compiled code, where variables lie element by element. */
static bool
is_local(const struct hed_ptx_reg *v)
{
    return strncmp(v->name, "%depot.", 7) == 0 || strncmp(v->name, "%a3.", 4) == 0;
}

static void
check_value(const struct hed_ptx_reg *v, uint32_t origin)
{
    const struct hed_uniforms *u = claims_here();
    struct look k = {
        .class = &u->values[v->id], .bits = hed_ptx_types[v->type].bits, .bound = u->bounds[v->id]};
    const char *wrong = NULL;

    if (now.wrong[0] || !now.ssa.is_read[v->id] || is_local(v) || k.bits > 64 || !at.lanes ||
        now.is_unwritten[origin])
        return;
    now.checked++;
    k.all = UINT64_MAX >> (64 - k.bits);
    k.first = (unsigned)__builtin_ctz(at.lanes);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        k.numbers[i] = read_lane(v, now.places[origin], i);
    for (unsigned i = k.first; i < HED_PTX_LANES && !wrong; i++) {
        wrong = at.lanes >> i & 1 ? wrong_claim(&k, i) : NULL;
        if (wrong)
            snprintf(now.wrong, sizeof(now.wrong),
                     "%s of %s is wrong at line %u, lanes %08x: it is %llx in lane %u, %llx in "
                     "lane %u",
                     wrong, v->name, at.line, at.lanes, (unsigned long long)k.numbers[k.first],
                     k.first, (unsigned long long)k.numbers[i], i);
    }
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* The register that a value was: "%r4" of "%r4.2". */
static uint32_t
register_of(const struct hed_ptx_reg *v)
{
    const size_t n = (size_t)(strrchr(v->name, '.') - v->name);

    for (const struct hed_ptx_reg *r = now.func->regs; r; r = r->next)
        if (strncmp(r->name, v->name, n) == 0 && r->name[n] == 0)
            return r->id;
    abort();
}

static void
check_write(void *arg, const struct hed_ptx_reg **reg)
{
    (void)arg;
    check_value(*reg, register_of(*reg));
}

/* Lanes that wait for each other leave such an instruction in another company. */
static bool
meets(uint32_t line)
{
    return now.insts[line] && hed_ptx_op_nature(now.insts[line]->form->op) == HED_PTX_MEETS;
}

/* Does a tested value step as the guess says? */
static bool
holds_guess(const struct hed_guess *g, uint32_t id)
{
    const struct hed_ptx_reg *v = now.flow.values[id];
    const uint32_t place = now.places[register_of(v)];
    const uint64_t all = UINT64_MAX >> (64 - hed_ptx_types[v->type].bits);

    for (unsigned i = 1; i < HED_PTX_LANES; i++)
        if ((read_lane(v, place, i) - read_lane(v, place, 0) -
             claimed_distance(&g->u.values[id], i)) &
            all)
            return false;
    return true;
}

/* Lanes are in another block. Of a loop that is gone round on several ways, compiled code begins a
 * round when all lanes have ended theirs, but the machine here does not. */
static void
enter_block(uint32_t b)
{
    const uint32_t loop = now.flow.blocks[b].loop, before = at.block;
    const struct hed_guess *g = loop == HED_FLOW_NONE ? NULL : now.guesses[loop];

    at.block = b;
    now.guessed += at.loop != HED_FLOW_NONE;
    if (at.loop != HED_FLOW_NONE && !hed_flow_in_loop(&now.flow, b, at.loop))
        at.loop = HED_FLOW_NONE;
    if (!g || now.flow.loops[loop].header != b || now.flow.loops[loop].nlatches > 1 ||
        at.lanes != UINT32_MAX ||
        (before != HED_FLOW_NONE && hed_flow_in_loop(&now.flow, before, loop)))
        return;
    at.loop = loop;
    for (uint32_t i = 0; i < g->ntested; i++)
        if (now.is_unwritten[register_of(now.flow.values[g->tested[i]])] ||
            !holds_guess(g, g->tested[i]))
            at.loop = HED_FLOW_NONE;
}

/* The instruction of the last line is done. */
static void
end_line(void)
{
    if (at.line && now.insts[at.line] && !meets(at.line))
        hed_flow_each_write(now.insts[at.line], check_write, NULL);
    at.line = 0;
}

static void
note_step(struct interp_warp *w, const struct interp_step *s)
{
    if (w->warp != at.warp)
        at.block = at.loop = HED_FLOW_NONE;
    if (w->warp != at.warp || w->frame->func->ptx != now.func)
        at.line = 0;
    at.warp = w->warp;
    if (w->frame->func->ptx != now.func || s->line == at.line || s->line >= LINES_MAX)
        return;
    end_line();
    at.line = s->line;
    at.lanes = w->active;
    at.registers = w->frame->registers;
    if (now.begins[s->line])
        enter_block(now.begins[s->line] - 1);
    if (now.begins[s->line] && !meets(s->line))
        for (const struct hed_flow_phi *p = now.flow.blocks[at.block].phis; p; p = p->next)
            check_value(p->to, p->origin);
}

/* Stands for each step, since many run the next one themselves. */
static const struct interp_step *
look_and_run(struct interp_warp *w, const struct interp_step *s)
{
    const struct interp_func *f = w->frame->func;

    note_step(w, s);
    w->warp->fuel = FUEL;
    return now.runs[f - f->program->funcs][s - f->steps](w, s);
}

static void
note_unwritten(void *arg, const struct hed_ptx_reg **reg)
{
    (void)arg;
    now.is_unwritten[register_of(*reg)] = true;
}

/* Puts look_and_run() before each step, and finds the instructions that have none. */
static void
spy_on(const struct hed_interp *p)
{
    bool *has_step = calloc(LINES_MAX, sizeof(*has_step));

    now.runs = calloc((size_t)p->nfuncs + 1, sizeof(*now.runs));
    if (!now.runs || !has_step)
        abort();
    for (uint32_t f = 0; f < p->nfuncs; f++) {
        struct interp_func *func = &p->funcs[f];

        now.runs[f] = calloc(func->count, sizeof(*now.runs[f]));
        if (!now.runs[f])
            abort();
        for (uint32_t i = 0; i < func->count; i++) {
            now.runs[f][i] = func->steps[i].run;
            func->steps[i].run = look_and_run;
            if (func->ptx == now.func && func->steps[i].line < LINES_MAX)
                has_step[func->steps[i].line] = true;
        }
    }
    for (uint32_t line = 0; line < LINES_MAX; line++)
        if (now.insts[line] && !has_step[line])
            hed_flow_each_write(now.insts[line], note_unwritten, NULL);
    free(has_step);
}

static void
forget_runs(void)
{
    for (uint32_t f = 0; now.runs && now.runs[f]; f++)
        free(now.runs[f]);
    free(now.runs);
    now.runs = NULL;
}

/* hed_interp_entry, with a look at each step. */
static void
run_warp(struct hed_ptx_warp *warp)
{
    static const uint32_t never = 0;
    const struct hed_interp *p = warp->grid->program;
    struct interp_warp w = {.live = warp->lanes,
                            .warp = warp,
                            .stop = &never,
                            .free = warp->memory,
                            .end = warp->memory + warp->memory_size};
    const struct interp_step *s = p->funcs[0].steps;

    if (!now.runs)
        spy_on(p);
    hed_interp_enter(&w, hed_interp_push(&w, &p->funcs[0], w.live, 0));
    interp_set_active(&w, w.live);
    while (s)
        s = s->run(&w, s);
    at.line = 0;
    at.warp = NULL;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* As decode.c does. */
static void
place_registers(void)
{
    uint8_t *uses = hed_ptx_find_uses(now.func);
    uint32_t place = 4;

    now.is_unwritten = calloc((size_t)now.func->nregs + 1, sizeof(*now.is_unwritten));
    now.places = calloc((size_t)now.func->nregs + 1, sizeof(*now.places));
    if (!uses || !now.places || !now.is_unwritten)
        abort();
    for (unsigned once = 0; once < 2; once++)
        for (const struct hed_ptx_reg *r = now.func->regs; r; r = r->next) {
            const uint32_t bytes = interp_bytes(r->type) * HED_PTX_LANES;

            if ((uses[r->id] == HED_PTX_USE_ONCE) != once)
                continue;
            place = bytes ? (uint32_t)hed_round_up(place, 32) : place;
            now.places[r->id] = place;
            place += bytes ? bytes : 4;
        }
    free(uses);
}

static void
note_lines(void)
{
    memset(now.insts, 0, sizeof(now.insts));
    memset(now.begins, 0, sizeof(now.begins));
    for (uint32_t b = 0; b < now.flow.nblocks; b++) {
        const struct hed_flow_block *block = &now.flow.blocks[b];
        const struct hed_ptx_inst *first = block->ninsts ? block->insts[0] : block->last;

        for (uint32_t i = 0; i < block->ninsts; i++)
            if (block->insts[i]->stmt.line < LINES_MAX)
                now.insts[block->insts[i]->stmt.line] = block->insts[i];
        if (first && first->stmt.line < LINES_MAX)
            now.begins[first->stmt.line] = b + 1;
    }
}

/* Each instruction and each label of the kernel gets a line. */
static char *
spread_lines(const char *text)
{
    const char *kernel = strstr(text, ".visible .entry");
    char *out = malloc(2 * strlen(text) + 1), *to = out;

    if (!out)
        abort();
    for (; *text; text++) {
        *to++ = *text;
        if (text > kernel && (*text == ';' || *text == ':'))
            *to++ = '\n';
    }
    *to = 0;
    return out;
}

static void
show_kernel(const char *text)
{
    struct hed_buf values;

    hed_buf_init(&values, 16 << 20);
    hed_flow_show(&now.flow, &now.u, &values);
    printf("%s\n%s", hed_buf_cstr(&values), text);
    hed_buf_fini(&values);
}

/* Whether all claims hold. */
static bool
try_text(const char *text, const struct random_kernel *k, const struct random_shape *shape,
         const void *params, bool show)
{
    const uint32_t width = shape->width ? shape->width : shape->threads;
    const uint32_t ntid[3] = {width, shape->threads / width, 1};
    const struct exec_launch launch = {.blocks = shape->blocks,
                                       .threads = shape->threads,
                                       .width = shape->width,
                                       .params = params,
                                       .size = 20,
                                       .meets = k->meets};
    const char *why = NULL;
    struct exec e;

    exec_open(&e, text, EXEC_BASELINE);
    e.entry = run_warp;
    for (now.func = e.module.funcs; !now.func->is_entry;)
        now.func = now.func->next;
    now.wrong[0] = 0;
    if (hed_flow_init(&now.flow, now.func, &why) == 0 &&
        hed_ssa_init(&now.ssa, &now.flow, &why) == 0 &&
        hed_uniforms_init(&now.u, &now.flow, &now.ssa, hed_rows_of(ntid)) == 0 &&
        (now.guesses = hed_guess_init(&now.flow, &now.u)) != NULL) {
        note_lines();
        place_registers();
        if (exec_run(&e, "k", &launch) != 0)
            snprintf(now.wrong, sizeof(now.wrong), "trap %u at line %u", e.trap, e.trap_line);
        forget_runs();
        free(now.places);
        free(now.is_unwritten);
        if (now.wrong[0] && show)
            show_kernel(text);
    }
    hed_flow_fini(&now.flow);
    exec_close(&e);
    return !now.wrong[0];
}

static bool
try_seed(uint64_t seed, unsigned char *in, unsigned char *out, bool show)
{
    static struct random_kernel k;
    struct random_shape shape;
    char *text, *spread;
    bool good;

    random_kernel_make(&k, seed);
    random_shape(&k, seed, &shape);
    text = random_kernel_text(&k);
    spread = spread_lines(text);

    const struct {
        void *in, *out;
        uint32_t n;
    } params = {in + RANDOM_IN, out, shape.n};

    good = try_text(spread, &k, &shape, &params, show);
    if (!good)
        printf("seed %llu, %u blocks of %u threads, width %u, n %u: %s\n", (unsigned long long)seed,
               shape.blocks, shape.threads, shape.width, shape.n, now.wrong);
    fflush(stdout);
    free(text);
    free(spread);
    random_kernel_free(&k);
    return good;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"seconds", required_argument, NULL, 't'},
                                            {"show", no_argument, NULL, 'v'},
                                            {0}};
    const time_t start = time(NULL);
    uint64_t seed = 1, count = UINT64_MAX, done = 0;
    unsigned char *in = calloc(2, RANDOM_IN), *out = malloc(RANDOM_OUT);
    bool show = false, good = true;
    long seconds = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (c == 't')
            seconds = strtol(optarg, NULL, 10);
        else if (c == 'v')
            show = true;
        else
            return 2;
    }
    if (!in || !out)
        return 2;
    random_fill(in);
    while (good && done < count && (!seconds || time(NULL) - start < seconds))
        good = try_seed(seed + done++, in, out, show);
    printf("%llu kernels, %llu claims, %llu blocks of guessed loops\n", (unsigned long long)done,
           (unsigned long long)now.checked, (unsigned long long)now.guessed);
    free(in);
    free(out);
    return !good;
}
