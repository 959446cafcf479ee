/* heddle cpu explain: how kernels run on the CPU GPU, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "kernel/ptx.h"

static const char usage[] =
    "usage: heddle cpu explain FILE|PID [KERNEL] [OPTION...]\n"
    "\n"
    "Shows how kernels run on the CPU GPU, and why: the tier and the shape of their\n"
    "code, which values are the same in all lanes of a warp, which memory accesses\n"
    "are gathers, where the code is cut at barriers, and what a warp costs.\n"
    "\n"
    "FILE is PTX, or a program, library, fat binary or archive with PTX in it. PID is\n"
    "a process that runs on the CPU GPU. KERNEL is a part of a kernel's name; without\n"
    "it, a table has one line for each kernel.\n"
    "\n"
    "  --block X[,Y[,Z]]   threads of a block; code depends on how they lie in warps\n"
    "  --lines             also list all instructions\n"
    "  --passes            compile, and also list the compiler's passes: what each\n"
    "                      found or made, and its time\n"
    "  --compile           compile every kernel, to see shape and compile time\n"
    "  --no-compile        compile none; by default, a single kernel of a file is\n"
    "  --json              print one JSON object per kernel, one per line\n"
    "  -h, --help          show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if there is no such kernel or no PTX, 2 if an\n"
    "option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"block", true}, {"lines", false},  {"compile", false}, {"no-compile", false},
    {"json", false}, {"passes", false}, {"help", false},    {NULL, false},
};

enum option { OPT_BLOCK, OPT_LINES, OPT_COMPILE, OPT_NO_COMPILE, OPT_JSON, OPT_PASSES, OPT_HELP };

/* "32,8" */
static bool
read_block(const struct hed_cli_opts *o, uint32_t block[3])
{
    const char *at = o->value;
    uint64_t threads = 1;

    block[0] = block[1] = block[2] = 1;
    for (int d = 0; d < 3; d++) {
        char *end;
        const unsigned long n = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;

        if (n == 0 || n > 1024)
            break;
        block[d] = (uint32_t)n;
        threads *= n;
        if (*end == 0 && threads <= 1024)
            return true;
        if (*end != ',')
            break;
        at = end + 1;
    }
    hed_cli_say("%s: --block '%s' is not 1 to 1024 threads such as 256 or 32,8", o->command,
                o->value);
    return false;
}

/* Returns -1 to go on, else an exit code. */
static int
read_explain_words(int argc, char **argv, struct hed_cpu_asked *asked)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    int word;

    o.command = "cpu explain";
    while ((word = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (word == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (word == HED_CLI_OPERAND && asked->kernel) {
            hed_cli_say("cpu explain: unexpected '%s'; give one file or process, and one kernel",
                        o.value);
            return HED_EXIT_USAGE;
        }
        if (word == HED_CLI_OPERAND && asked->target)
            asked->kernel = o.value;
        else if (word == HED_CLI_OPERAND)
            asked->target = o.value;
        else if (word == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        } else if (word == OPT_BLOCK && !read_block(&o, asked->block))
            return HED_EXIT_USAGE;
        asked->lines |= word == OPT_LINES;
        asked->json |= word == OPT_JSON;
        asked->passes |= word == OPT_PASSES;
        asked->compiles |= word == OPT_COMPILE || word == OPT_PASSES;
        asked->compiles_not |= word == OPT_NO_COMPILE;
    }
    if (asked->target)
        return -1;
    hed_cli_say("cpu explain: no file and no process given; see heddle cpu explain --help");
    return HED_EXIT_USAGE;
}

struct explaining {
    const struct hed_cpu_asked *asked;
    uint64_t count; /* kernels: 0, 1 or more */
    uint64_t done;
    int code;
};

static bool
count_subject(void *arg, struct hed_cpu_subject *s)
{
    struct explaining *x = arg;

    (void)s;
    return ++x->count < 2;
}

static bool
is_table(const struct explaining *x)
{
    return x->count > 1 && !x->asked->kernel && !x->asked->lines && !x->asked->passes;
}

static void
print_subject(const struct explaining *x, const struct hed_cpu_subject *s)
{
    if (x->asked->json) {
        hed_cpu_print_json(s, x->asked);
    } else if (is_table(x)) {
        if (x->done == 0)
            hed_cpu_print_head();
        hed_cpu_print_row(s);
    } else {
        if (x->done)
            putchar('\n');
        hed_cpu_print_page(s, x->asked);
    }
}

static bool
explain_subject(void *arg, struct hed_cpu_subject *s)
{
    struct explaining *x = arg;
    struct hed_ptx_unit unit;
    int err;

    if (!s->func && (x->asked->json || is_table(x))) {
        print_subject(x, s);
        x->done++;
        return !ferror(stdout);
    }
    if (!s->func) {
        hed_cli_say("cpu explain: kernel %s of %s: %s", s->name, s->source, s->why_no_text);
        x->code = HED_EXIT_FAILED;
        return true;
    }
    err = hed_ptx_unit_init(&unit, s->module, s->func);
    if (err) {
        hed_cli_say("cpu explain: kernel %s: %s", s->name, hed_err_text(err));
        x->code = HED_EXIT_FAILED;
        return true;
    }
    err = hed_explain_init(&s->explained, &unit, s->func, s->rows);
    if (err) {
        hed_cli_say("cpu explain: kernel %s: %s", s->name, hed_err_text(err));
        x->code = HED_EXIT_FAILED;
    } else {
        const bool is_one = !s->shown && (x->count == 1 || x->asked->kernel);

        if (x->asked->compiles || (is_one && !x->asked->compiles_not))
            hed_cpu_make(s);
        print_subject(x, s);
        x->done++;
    }
    hed_explain_fini(&s->explained);
    hed_ptx_unit_fini(&unit);
    return !ferror(stdout);
}

int
hed_cli_cpu_explain(int argc, char **argv)
{
    bool is_said = false;
    struct hed_cpu_asked asked = {.is_said = &is_said};
    struct explaining x = {.asked = &asked, .code = HED_EXIT_OK};
    int code = read_explain_words(argc, argv, &asked);

    if (code >= 0)
        return code;
    asked.is_quiet = true;
    (void)hed_cpu_each_subject(&asked, count_subject, &x);
    asked.is_quiet = false;
    if (is_said)
        return HED_EXIT_FAILED;
    code = hed_cpu_each_subject(&asked, explain_subject, &x);
    return code != HED_EXIT_OK ? code : x.code;
}
