/* heddle top: who uses the GPUs now. Reads the words, and prints; the screen is screen.c's. */
#include "cli/top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/str.h"
#include "cli/cli.h"
#include "core/config.h"
#include "remote/remote.h"

#define OUTPUT_MAX (64u << 20)
#define PRINT_COLUMNS 132             /* where there is no terminal */
#define SERVERS_NS (2 * HED_NS_PER_S) /* to wait for servers, before something is printed once */
#define EVERY_LEAST_S 0.1
#define EVERY_MOST_S 3600

static const char usage[] =
    "usage: heddle top [OPTION...]\n"
    "\n"
    "Shows who uses the GPUs now: the programs that share one (heddle run --sched),\n"
    "and the clients of servers on this machine (heddle serve), with the part of the\n"
    "time in which the GPU works for each, in which it is held, its memory, and its\n"
    "calls. You see your own programs; root sees everybody's.\n"
    "\n"
    "  -1, --once          print it once, after looking for the time of --every\n"
    "  --json              print one JSON object per line, one every so often; with\n"
    "                      -1, one\n"
    "  --every SECONDS     look so often, 0.1 to 3600 (default: 1)\n"
    "  --sort KEY          busy (default), wait, memory, launches, pid, user,\n"
    "                      program, state or device\n"
    "  --reverse           turn the order round\n"
    "  --filter TEXT       only those with this in their user, name, command line,\n"
    "                      group, address or state, or with this process id\n"
    "  --tree              put the programs of a user and group together, with sums\n"
    "  --command           show command lines instead of names\n"
    "  --listen ADDRESS    ask the server there; can be given several times.\n"
    "                      Default: your own server and root's, if they run\n"
    "  --no-watch          do not ask programs to measure their GPU time; a program\n"
    "                      that works alone then shows none\n"
    "  -h, --help          show this help\n"
    "\n"
    "Keys: q quit, arrows choose a program, p pauses it or lets it go on, + and -\n"
    "change its priority, s and S sort, r turns the order round, / filters, t tree,\n"
    "c command lines, h help.\n"
    "\n"
    "The exit code is 0 on success, 1 if it failed, 2 if an option is wrong.\n";

enum {
    OPT_ONCE,
    OPT_JSON,
    OPT_EVERY,
    OPT_SORT,
    OPT_REVERSE,
    OPT_FILTER,
    OPT_TREE,
    OPT_COMMAND,
    OPT_LISTEN,
    OPT_NO_WATCH,
    OPT_HELP
};

static const struct hed_cli_opt options[] = {
    [OPT_ONCE] = {"once", false},       [OPT_JSON] = {"json", false},
    [OPT_EVERY] = {"every", true},      [OPT_SORT] = {"sort", true},
    [OPT_REVERSE] = {"reverse", false}, [OPT_FILTER] = {"filter", true},
    [OPT_TREE] = {"tree", false},       [OPT_COMMAND] = {"command", false},
    [OPT_LISTEN] = {"listen", true},    [OPT_NO_WATCH] = {"no-watch", false},
    [OPT_HELP] = {"help", false},       {NULL, false},
};

struct request {
    struct hed_top_choice choice;
    struct hed_live_how how;
    const char *servers[HED_LIVE_SERVERS];
    bool once, json, help;
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool
take_every(struct request *r, const char *text)
{
    char *end = NULL;
    const double s = strtod(text, &end);

    /* Not a comparison that NaN passes. */
    if (end == text || *end || !(s >= EVERY_LEAST_S && s <= EVERY_MOST_S)) {
        hed_cli_say("top: --every '%s' is not a number of seconds from 0.1 to 3600", text);
        return false;
    }
    r->how.every = (uint64_t)(s * HED_NS_PER_S);
    return true;
}

static bool
take_server(struct request *r, const char *address)
{
    if (r->how.server_count == HED_LIVE_SERVERS) {
        hed_cli_say("top: --listen: more than %d servers", HED_LIVE_SERVERS);
        return false;
    }
    if (!hed_address_is(address)) {
        hed_cli_say("top: --listen '%s' is not the address of a server, such as shm:/tmp/gpu.sock",
                    address);
        return false;
    }
    r->servers[r->how.server_count++] = address;
    return true;
}

static bool
take_top_option(struct request *r, int option, const char *value)
{
    switch (option) {
    case OPT_EVERY:
        return take_every(r, value);
    case OPT_SORT:
        if (hed_top_sort_find(value, &r->choice.sort))
            return true;
        hed_cli_say("top: --sort '%s' is not a key; there are busy, wait, memory, launches, pid, "
                    "user, program, state and device",
                    value);
        return false;
    case OPT_FILTER:
        (void)hed_str_copy(r->choice.filter, sizeof r->choice.filter, value);
        return true;
    case OPT_LISTEN:
        return take_server(r, value);
    default:
        r->once = r->once || option == OPT_ONCE;
        r->json = r->json || option == OPT_JSON;
        r->help = r->help || option == OPT_HELP;
        r->choice.reverse = r->choice.reverse || option == OPT_REVERSE;
        r->choice.tree = r->choice.tree || option == OPT_TREE;
        r->choice.command = r->choice.command || option == OPT_COMMAND;
        r->how.watch = r->how.watch && option != OPT_NO_WATCH;
        return true;
    }
}

static int
parse_top(struct request *r, int argc, char **argv)
{
    static char once[] = "--once";
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    int option;

    for (;;) {
        if (o.at < argc && strcmp(argv[o.at], "-1") == 0)
            argv[o.at] = once;
        option = hed_cli_opts_next(&o);
        if (option == HED_CLI_OPT_END)
            break;
        if (option == HED_CLI_OPT_BAD || !take_top_option(r, option, o.value))
            return HED_EXIT_USAGE;
    }
    return r->help || hed_cli_opts_no_operands(&o) ? HED_EXIT_OK : HED_EXIT_USAGE;
}

/* ---- printing -------------------------------------------------------------------------------- */

static int
print_top_page(const struct request *r, const struct hed_live_view *v)
{
    const size_t columns = hed_cli_columns();
    struct hed_top_list list = {0};
    struct hed_top_page page = {0};
    struct hed_top_state s = {.view = v,
                              .list = &list,
                              .choice = &r->choice,
                              .columns = columns ? columns : PRINT_COLUMNS};
    int err = hed_top_arrange(v, &r->choice, &list);

    if (!err) {
        hed_top_draw(&s, &page);
        err = page.err;
    }
    for (size_t i = 0; i < page.count; i++)
        puts(page.lines[i].text);
    hed_top_page_free(&page);
    hed_top_list_free(&list);
    return err;
}

static int
print_json(const struct hed_live_view *v)
{
    struct hed_buf b;
    int err;

    hed_buf_init(&b, OUTPUT_MAX);
    hed_live_json(v, &b);
    err = b.err;
    if (!err)
        puts(hed_buf_cstr(&b));
    hed_buf_fini(&b);
    /* Whoever reads it may be gone. */
    return err ? err : fflush(stdout) != 0 || ferror(stdout) ? HED_EIO : 0;
}

/* Prints the second of two looks, because the first knows no rates; or one after the other. */
static int
print_views(const struct request *r, struct hed_live_look *l)
{
    const struct hed_live_view *v = NULL;
    uint64_t next = hed_now_ns();
    int err;

    hed_live_wait(l, SERVERS_NS);
    for (bool first = true;; first = false) {
        err = hed_live_sample(l, &v);
        if (err)
            break;
        if (!r->once)
            err = print_json(v);
        else if (!first)
            return r->json ? print_json(v) : print_top_page(r, v);
        if (err)
            break;
        next = hed_now_ns() > next + r->how.every ? hed_now_ns() : next + r->how.every;
        hed_sleep_ns(next > hed_now_ns() ? next - hed_now_ns() : 0);
    }
    return err;
}

static int
print_top(const struct request *r)
{
    struct hed_live_look *l = NULL;
    struct hed_why why = {""};
    int err = hed_live_open(&r->how, &l, &why);

    if (!err) {
        err = print_views(r, l);
        if (err)
            hed_why_set(&why, "%s", hed_err_text(err));
        hed_live_close(l);
    }
    if (err)
        hed_cli_say("top: %s", why.text);
    return err ? HED_EXIT_FAILED : HED_EXIT_OK;
}

int
hed_cli_top(int argc, char **argv)
{
    static struct hed_config config; /* large */
    struct request r = {.how = {.every = HED_NS_PER_S, .watch = true}};
    struct hed_why why = {""};
    const int code = parse_top(&r, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (r.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (hed_config_load(&config, environ, &why) != 0) {
        hed_cli_say("top: %s", why.text);
        return HED_EXIT_USAGE;
    }
    hed_meeting_choose(config.meet_dir);
    r.how.servers = r.servers;
    /* In a pipe there is no screen. */
    if (!r.json && !r.once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
        if (hed_top_has_screen())
            return hed_top_screen(&r.how, &r.choice);
        hed_cli_say("top: this heddle was built without ncurses, so it prints once; see --every "
                    "and --json");
    }
    r.once = r.once || !r.json;
    return print_top(&r);
}
