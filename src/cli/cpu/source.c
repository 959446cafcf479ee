/* Where the kernels to explain come from: the PTX of a file, or the board of a process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/demangle.h"
#include "base/str.h"
#include "base/tree.h"
#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "cli/fatbin/fatbin.h"
#include "kernel/ptx.h"

#define PID_MOST (1u << 22) /* the system has no larger ones */

struct visit {
    const struct hed_cpu_asked *asked;
    hed_cpu_subject_fn fn;
    void *arg;
    uint64_t kernels, matching;
    int code;
    struct hed_arena arena;
};

/* Nothing is said while kernels are only counted. */
#define say(v, ...)                   \
    do {                              \
        if (!(v)->asked->is_quiet)    \
            hed_cli_say(__VA_ARGS__); \
    } while (0)

static bool
is_asked_for(const struct hed_cpu_asked *asked, const char *name)
{
    char room[HED_DEMANGLED_MAX];

    return !asked->kernel || strstr(name, asked->kernel) ||
           strstr(hed_demangle(name, room, sizeof room), asked->kernel);
}

static enum hed_rows
rows_of_file(const struct hed_cpu_asked *asked, const struct hed_ptx_func *f)
{
    if (asked->block[0])
        return hed_rows_of(asked->block);
    return f->directives.reqntid[0] ? hed_rows_of(f->directives.reqntid) : HED_ROWS_32;
}

/* False if the text cannot be read; the reason was printed. */
static bool
parse_image_text(struct visit *v, struct hed_ptx_module *m, const char *source, uint64_t image,
                 struct hed_bytes text)
{
    hed_ptx_module_init(m, HED_PTX_CEILING);

    const int err = hed_ptx_parse(m, (const char *)text.data, text.size);

    if (err == 0) {
        hed_ptx_leave_out_device_runtime(m);
        return true;
    }
    if (m->errors)
        say(v, "%s: image %" PRIu64 ", line %u: %s", source, image, m->errors->line,
            m->errors->text);
    else
        say(v, "%s: image %" PRIu64 ": %s", source, image, hed_err_text(err));
    v->code = HED_EXIT_FAILED;
    hed_ptx_module_fini(m);
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool
visit_image(void *arg, const struct hed_cli_image *image)
{
    struct visit *v = arg;
    struct hed_ptx_module m;
    struct hed_bytes text;
    struct hed_why why;
    bool goes_on = true;

    hed_arena_reset(&v->arena);
    if (hed_fatbin_image(&image->entry, &v->arena, &text, &why) != 0) {
        say(v, "%s: image %" PRIu64 " %s", image->path, image->number, why.text);
        v->code = HED_EXIT_FAILED;
        return true;
    }
    if (!parse_image_text(v, &m, image->path, image->number, text))
        return true;
    for (const struct hed_ptx_func *f = m.funcs; f && goes_on; f = f->next) {
        struct hed_cpu_subject s = {.name = f->name,
                                    .source = image->path,
                                    .image = image->number,
                                    .module = &m,
                                    .func = f};

        if (!f->is_entry || !f->has_body)
            continue;
        v->kernels++;
        if (!is_asked_for(v->asked, f->name))
            continue;
        v->matching++;
        s.rows = rows_of_file(v->asked, f);
        goes_on = v->fn(v->arg, &s);
    }
    hed_ptx_module_fini(&m);
    return goes_on;
}

static void
visit_file(struct visit *v)
{
    const struct hed_cli_select ptx = {.kind = HED_FATBIN_PTX};
    const struct hed_cli_visit found = hed_cli_fatbin_visit(v->asked->target, &ptx, visit_image, v);

    if (found.code != HED_EXIT_OK) {
        v->code = found.code;
        *v->asked->is_said = found.images == 0;
    } else if (found.images == 0)
        say(v, "cpu explain: %s has no GPU code", v->asked->target);
    else if (found.selected == 0)
        say(v,
            "cpu explain: %s has machine code only; explain the PTX that heddle fatbin lift makes "
            "of it",
            v->asked->target);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The process's board, found among its descriptors. */
static int
open_board(uint32_t pid, struct hed_board_copy *out)
{
    char path[64], link[64];
    const struct dirent *e;
    int err = HED_ENOTFOUND;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    d = opendir(path);
    if (!d)
        return hed_err_from_errno(errno);
    while (err != 0 && (e = readdir(d)) != NULL) {
        const ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);

        if (n <= 0)
            continue;
        link[n] = 0;
        if (strcmp(link, "/memfd:" HED_BOARD_NAME " (deleted)") != 0)
            continue;

        const int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            continue;
        err = hed_board_read(fd, pid, out);
        close(fd);
    }
    closedir(d);
    return err;
}

static const struct hed_board_module *
find_shown_module(const struct hed_board_copy *c, uint32_t id)
{
    const struct hed_board_record *r;
    size_t at = 0;

    while ((r = hed_board_next(c, &at)) != NULL) {
        const struct hed_board_module *m = (const struct hed_board_module *)r;

        if (r->kind == HED_BOARD_MODULE && m->id == id)
            return m;
    }
    return NULL;
}

static void
take_shown_code(const struct hed_board_kernel *k, struct hed_cpu_made *made)
{
    if (k->tier != HED_BOARD_COMPILED)
        return;
    *made = (struct hed_cpu_made){
        .is_known = true,
        .info = {.made = k->shape, .flags = k->flags, .frame = k->frame},
        .us = k->compile_us,
        .is_cached = k->is_cached,
    };
}

/* False: stop. */
static bool
visit_shown(struct visit *v, const struct hed_board_copy *c, const char *source,
            const struct hed_board_kernel *k)
{
    const struct hed_board_module *shown = find_shown_module(c, k->module);
    struct hed_cpu_subject s = {.name = k->name,
                                .source = source,
                                .image = k->module,
                                .shown = k,
                                .is_lifted = shown && shown->is_lifted};
    struct hed_ptx_module m;
    bool goes_on = true;

    s.rows = k->rows < HED_ROWS_COUNT ? (enum hed_rows)k->rows : HED_ROWS_ANY;
    take_shown_code(k, &s.made);
    if (shown && shown->is_lifted && shown->text_size == 0)
        s.why_no_text = "it comes from machine code, and its compiled code from the cache; run the "
                        "program with HEDDLE_CACHE_SIZE=0 to see more";
    else if (!shown || !shown->has_text)
        s.why_no_text = "the process did not keep its text; explain its file instead";
    if (s.why_no_text) {
        v->matching++;
        return v->fn(v->arg, &s);
    }
    if (!parse_image_text(v, &m, source, k->module,
                          (struct hed_bytes){(const uint8_t *)shown->text, shown->text_size}))
        return true;
    for (s.func = m.funcs; s.func && strcmp(s.func->name, k->name) != 0;)
        s.func = s.func->next;
    if (s.func && s.func->is_entry && s.func->has_body) {
        s.module = &m;
        v->matching++;
        goes_on = v->fn(v->arg, &s);
    }
    hed_ptx_module_fini(&m);
    return goes_on;
}

/* The same, or the board of what a heddle command has started. */
static int
open_board_below(uint32_t pid, struct hed_board_copy *out)
{
    pid_t below[HED_TREE_FOUND];
    int err = open_board(pid, out);
    const size_t count = err == HED_ENOTFOUND ? hed_tree_below_heddle((pid_t)pid, below) : 0;

    for (size_t i = 0; i < count && err != 0; i++)
        if (open_board((uint32_t)below[i], out) == 0)
            err = 0;
    return err;
}

static void
visit_process(struct visit *v, uint32_t pid)
{
    const struct hed_board_record *r;
    struct hed_board_copy c;
    char source[32];
    size_t at = 0;
    bool goes_on = true;
    int err;

    snprintf(source, sizeof source, "/proc/%u", pid);
    err = access(source, F_OK) == 0 ? open_board_below(pid, &c) : HED_ESTATE;
    snprintf(source, sizeof source, "process %u", pid);
    if (err == HED_ESTATE)
        say(v, "cpu explain: there is no file and no %s", source);
    else if (err == HED_ENOTFOUND)
        say(v, "cpu explain: %s runs no kernels on the CPU GPU", source);
    else if (err)
        say(v, "cpu explain: %s: %s", source, hed_err_text(err));
    if (err) {
        v->code = HED_EXIT_FAILED;
        return;
    }
    while (goes_on && (r = hed_board_next(&c, &at)) != NULL) {
        const struct hed_board_kernel *k = (const struct hed_board_kernel *)r;

        if (r->kind != HED_BOARD_KERNEL)
            continue;
        v->kernels++;
        if (is_asked_for(v->asked, k->name))
            goes_on = visit_shown(v, &c, source, k);
    }
    if (hed_board_left_out(&c))
        say(v, "cpu explain: %s had no room to show %" PRIu64 " modules or kernels", source,
            hed_board_left_out(&c));
    hed_board_copy_free(&c);
}

int
hed_cpu_each_subject(const struct hed_cpu_asked *asked, hed_cpu_subject_fn fn, void *arg)
{
    struct visit v = {.asked = asked, .fn = fn, .arg = arg, .code = HED_EXIT_OK};
    uint64_t pid;

    hed_arena_init(&v.arena, HED_CLI_IMAGE_MAX);
    if (access(asked->target, F_OK) != 0 && hed_parse_u64(asked->target, &pid) == 0 && pid > 0 &&
        pid < PID_MOST)
        visit_process(&v, (uint32_t)pid);
    else
        visit_file(&v);
    hed_arena_fini(&v.arena);
    if (v.code == HED_EXIT_OK && v.matching == 0) {
        if (v.kernels)
            say(&v, "cpu explain: none of the %" PRIu64 " kernels of %s is called '%s'", v.kernels,
                asked->target, asked->kernel ? asked->kernel : "");
        v.code = HED_EXIT_FAILED;
    }
    return v.code;
}
