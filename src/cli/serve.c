/* heddle serve: becomes heddled, the server, which lies beside heddle's libraries; or asks a
 * running server what it is doing. The options are parsed here as in every command. heddled checks
 * their values (src/remote/server/listener/options.c), except for settings, which are checked here.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/drain.h"
#include "core/config.h"
#include "gen/storeys.h"
#include "locate/install.h"
#include "remote/remote.h"

#define WORDS_MAX 128 /* words of heddled's command line */

static const char usage[] =
    "usage: heddle serve [OPTION...]\n"
    "       heddle serve --status [--json] [--listen ADDRESS]\n"
    "       heddle serve --list | --evict WORKER [--listen ADDRESS]\n"
    "       heddle serve --drain --to ADDRESS [--listen ADDRESS]\n"
    "\n"
    "Lets programs elsewhere use this machine's GPUs. They run with\n"
    "`heddle run --gpu ADDRESS -- PROGRAM`, and each gets a process of its own here.\n"
    "The server stays in the foreground until a signal stops it.\n"
    "\n"
    "  --listen ADDRESS    listen at shm:PATH or unix:PATH (one socket serves both),\n"
    "                      at tcp://[HOST][:PORT], or for the QEMU guest NAME at\n"
    "                      vm:NAME[,size=SIZE]; can be given several times.\n"
    "                      Default: shm:/run/heddle/heddle.sock for root, otherwise\n"
    "                      shm:$XDG_RUNTIME_DIR/heddle.sock\n"
    "  --gpu WHERE         where GPU work runs: auto (default), gpu, cpu[:DEVICES],\n"
    "                      null\n"
    "  --mode MODE         permissions of the socket's file (default: 0600)\n"
    "  --allow-uid LIST    let these users connect, too: numbers or names, or all;\n"
    "                      root and the server's own user always can\n"
    "  --allow-gid LIST    let these groups connect, too\n"
    "  --memory SIZE       limit each client's memory on each device\n"
    "  --host-memory SIZE  limit each client's pinned memory (default: as below)\n"
    "  --total-memory SIZE limit what all clients together have of this machine's\n"
    "                      memory: pinned memory and, on the CPU, device memory\n"
    "                      (default: 3/4 of it; 0: no limit)\n"
    "  --clients N         serve at most N clients at a time (default: 512)\n"
    "  --channels N        allow each client at most N connections (default: 1024)\n"
    "  --spare N           keep N workers ready for clients that have not come yet\n"
    "                      (default: 0); each takes memory, about 0.5 GiB on a GPU\n"
    "  --rate N            accept at most N new clients per second (default: 512;\n"
    "                      0: no limit)\n"
    "  --per-source N      serve at most N clients of one address, or of one user of\n"
    "                      this machine (default: 0, no limit)\n"
    "  --startups N        have at most N connections that have not yet introduced\n"
    "                      themselves (default: 1024)\n"
    "  --idle SECONDS      disconnect clients that are silent for this long\n"
    "                      (default: never)\n"
    "  --session SECONDS   disconnect clients after this long (default: never)\n"
    "  --kernel-time SECONDS\n"
    "                      end kernels that run for this long (default: never)\n"
    "  --compile-time SECONDS\n"
    "                      disconnect clients with a kernel that takes this much\n"
    "                      processor time to compile (default: 600; 0: never)\n"
    "  --patience SECONDS  disconnect clients that take this long to introduce\n"
    "                      themselves (default: 15)\n"
    "  --grace SECONDS     when the server stops, give clients this long to finish\n"
    "                      (default: 5)\n"
    "  --guest-timeout SECONDS\n"
    "                      disconnect guests whose kernel is silent for this long,\n"
    "                      such as paused ones (default: 30; 0: never)\n"
    "  --park-timeout SECONDS\n"
    "                      end sessions whose client went away to be saved and does\n"
    "                      not return for this long (default: 600; 0: none may go)\n"
    "  --parked N          how many such sessions there may be (default: 256)\n"
    "  --parked-per-source N\n"
    "                      the same, of one address or user (default: 64)\n"
    "  --tls-ca FILE       TCP: accept clients with a certificate of this authority\n"
    "  --tls-cert FILE     TCP: the server's certificate\n"
    "  --tls-key FILE      TCP: the key of that certificate\n"
    "  --token-file FILE   TCP: accept clients that know the token in this file\n"
    "  --tls-deny FILE     TCP: refuse the certificates that this file lists\n"
    "  --insecure          TCP without TLS: anybody who can connect can use the GPU\n"
    "  --show-clients WHICH\n"
    "                      clients that --list and --status show to users other than\n"
    "                      root and the server's own: all, or own (default)\n"
    "  --images DIR        keep GPU code of clients in this folder for later clients;\n"
    "                      none: do not keep it. Default: ~/.cache/heddle/images, or,\n"
    "                      for root, /var/cache/heddle/images\n"
    "  --images-client SIZE\n"
    "                      what one client may keep there (default: 16G)\n"
    "  --images-total SIZE\n"
    "                      what all clients may keep there and as compiled kernels\n"
    "                      (default: 64G; 0: no limit)\n"
    "  --images-reserve SIZE\n"
    "                      keep this much of that disk free (default: 1G)\n"
    "  --sandbox MODE      confine the processes that serve clients: auto (as far as\n"
    "                      this machine can), require or off. Default: require with\n"
    "                      the CPU GPU over TCP, otherwise auto\n"
    "  --confine yes|no    kernels on the CPU GPU reach the GPU's memory and nothing\n"
    "                      else of these processes (default: yes)\n"
    "  --worker-uids A-B   server of root: users for these processes (default:\n"
    "                      70000-71024)\n"
    "  --worker-memory SIZE\n"
    "                      limit the private memory of each of these processes\n"
    "                      (default: the memory of this machine, at least 16G)\n"
    "  --worker-cpus N     let each of these processes use at most N processors;\n"
    "                      needs control groups (default: no limit)\n"
    "  --config FILE       read options from this file first: lines `name = value`;\n"
    "                      SIGHUP reads it again. -FILE: it may be missing\n"
    "  --log SPEC          what to log: level[,component=level...] (default:\n"
    "                      warn,server=info)\n"
    "  --status            print what the server at ADDRESS is doing: its limits,\n"
    "                      devices and clients\n"
    "  --json              with --status: print it as JSON\n"
    "  --list              print the clients only\n"
    "  --evict WORKER      end the client with this worker, a number from --list\n"
    "  --drain             move all programs that the server has to another, while\n"
    "                      they run, and stop the server\n"
    "  --to ADDRESS        with --drain: the server to go to\n"
    "  -h, --help          show this help\n"
    "\n"
    "The exit code is 0 if a signal stopped the server, 1 if it failed, 2 if an\n"
    "option or setting is wrong, 125 if heddle is not installed properly.\n";

enum {
    OPT_LISTEN,
    OPT_GPU,
    OPT_LOG,
    OPT_STATUS,
    OPT_JSON,
    OPT_LIST,
    OPT_EVICT,
    OPT_DRAIN,
    OPT_TO,
    OPT_HELP
};

static const struct hed_cli_opt options[] = {
    [OPT_LISTEN] = {"listen", true},
    [OPT_GPU] = {"gpu", true},
    [OPT_LOG] = {"log", true},
    [OPT_STATUS] = {"status", false},
    [OPT_JSON] = {"json", false},
    [OPT_LIST] = {"list", false},
    [OPT_EVICT] = {"evict", true},
    [OPT_DRAIN] = {"drain", false},
    [OPT_TO] = {"to", true},
    [OPT_HELP] = {"help", false},
    /* The rest are checked by heddled. */
    {"mode", true},
    {"allow-uid", true},
    {"allow-gid", true},
    {"memory", true},
    {"host-memory", true},
    {"total-memory", true},
    {"clients", true},
    {"channels", true},
    {"spare", true},
    {"rate", true},
    {"per-source", true},
    {"startups", true},
    {"idle", true},
    {"session", true},
    {"kernel-time", true},
    {"compile-time", true},
    {"patience", true},
    {"grace", true},
    {"guest-timeout", true},
    {"park-timeout", true},
    {"parked", true},
    {"parked-per-source", true},
    {"tls-ca", true},
    {"tls-cert", true},
    {"tls-key", true},
    {"token-file", true},
    {"tls-deny", true},
    {"insecure", false},
    {"show-clients", true},
    {"images", true},
    {"images-client", true},
    {"images-total", true},
    {"images-reserve", true},
    {"sandbox", true},
    {"confine", true},
    {"worker-uids", true},
    {"worker-memory", true},
    {"worker-cpus", true},
    {"config", true},
    {NULL, false},
};

struct request {
    struct hed_env env;
    struct hed_config config;
    char *words[WORDS_MAX + 1]; /* of heddled, NULL at the end; owned */
    int count;
    const char *listen; /* the first address; NULL: none */
    bool drain;
    const char *to;              /* of --drain */
    struct hed_preface question; /* kind 0: none, it becomes a server */
    bool gpu, help, json;
};

/* ---- the words ------------------------------------------------------------------------------- */

static int
add_word(struct request *r, const char *name, const char *value)
{
    char *word = NULL;

    if (r->count == WORDS_MAX) {
        hed_cli_say("serve: more than %d options", WORDS_MAX);
        return HED_EXIT_USAGE;
    }
    if (asprintf(&word, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0) {
        hed_cli_say("serve: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_FAILED;
    }
    r->words[r->count++] = word;
    return HED_EXIT_OK;
}

/* Takes a setting as `heddle run` does. */
static int
take_setting(struct request *r, const char *key, const char *value)
{
    struct hed_why why = {""};

    if (hed_address_is(value)) {
        hed_cli_say("serve: --gpu '%s' is another server; a server needs gpu, cpu or null", value);
        return HED_EXIT_USAGE;
    }
    if (hed_config_set(&r->config, key, value, &why) != 0) {
        hed_cli_say("serve: --%s", why.text);
        return HED_EXIT_USAGE;
    }
    hed_env_set_setting(&r->env, key, value);
    return HED_EXIT_OK;
}

static int
take_evicted(struct request *r, const char *value)
{
    r->question.kind = HED_PREFACE_EVICT;
    if (hed_parse_u64(value, &r->question.worker) == 0)
        return HED_EXIT_OK;
    hed_cli_say("serve: --evict: '%s' is not the number of a worker (heddle serve --list)", value);
    return HED_EXIT_USAGE;
}

static int
take_serve_option(struct request *r, int option, const char *value)
{
    switch (option) {
    case OPT_GPU:
        r->gpu = true;
        return take_setting(r, "gpu", value);
    case OPT_LOG:
        return take_setting(r, "log", value);
    case OPT_STATUS:
        r->question.kind = HED_PREFACE_REPORT;
        return HED_EXIT_OK;
    case OPT_JSON:
        r->json = true;
        return HED_EXIT_OK;
    case OPT_LIST:
        r->question.kind = HED_PREFACE_LIST;
        return HED_EXIT_OK;
    case OPT_EVICT:
        return take_evicted(r, value);
    case OPT_DRAIN:
        r->drain = true;
        return HED_EXIT_OK;
    case OPT_TO:
        r->to = value;
        return HED_EXIT_OK;
    case OPT_HELP:
        r->help = true;
        return HED_EXIT_OK;
    case OPT_LISTEN:
        r->listen = r->listen ? r->listen : value;
        return add_word(r, "listen", value);
    default:
        return add_word(r, options[option].name, value);
    }
}

static int
parse_serve(struct request *r, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_why why = {""};
    int option;

    hed_config_init(&r->config);
    hed_env_init(&r->env, environ);
    r->words[r->count++] = strdup("heddled");
    while (!r->help && (option = hed_cli_opts_next(&o)) != HED_CLI_OPT_END) {
        const int code =
            option == HED_CLI_OPT_BAD ? HED_EXIT_USAGE : take_serve_option(r, option, o.value);

        if (code)
            return code;
    }
    if (r->help)
        return HED_EXIT_OK;
    if (!hed_cli_opts_no_operands(&o))
        return HED_EXIT_USAGE;
    if (r->json && r->question.kind != HED_PREFACE_REPORT) {
        hed_cli_say("serve: --json says how to print the answer to --status");
        return HED_EXIT_USAGE;
    }
    if (r->json)
        r->question.kind = HED_PREFACE_STATUS;
    if (r->drain != (r->to && r->to[0])) {
        hed_cli_say(r->drain ? "serve: --drain needs --to ADDRESS, the server to go to"
                             : "serve: --to says where --drain moves programs");
        return HED_EXIT_USAGE;
    }
    if (hed_cli_settings(&r->config, &r->env, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

/* ---- serving --------------------------------------------------------------------------------- */

static int
become_server(struct request *r)
{
    struct hed_install install;
    struct hed_why why = {""};
    char path[PATH_MAX];
    /* A setting that sends the user's programs to a server is not meant for the server itself. */
    const char *gpu = hed_address_is(r->config.gpu) ? "auto" : r->config.gpu;
    int code;

    if (hed_install_find(&install, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
        return HED_EXIT_BROKEN;
    }
    if (hed_config_gpu_is(gpu, "cpu") &&
        !hed_install_plugin(&install, "backend-cpu", path, sizeof path)) {
        hed_cli_say("serve: --gpu '%s': there is no %s; install heddle again, or build it with "
                    "HEDDLE_CPU=ON",
                    gpu, path);
        return HED_EXIT_BROKEN;
    }
    /* heddled's own default is the same, and gives way to its file. */
    code = r->gpu || strcmp(gpu, "auto") != 0 ? add_word(r, "gpu", gpu) : HED_EXIT_OK;
    if (!code && r->config.log[0])
        code = add_word(r, "log", r->config.log);
    if (code)
        return code;

    const int n = snprintf(path, sizeof path, "%s/heddled", install.dir);

    if (n < 0 || (size_t)n >= sizeof path || r->env.failed || !r->words[0]) {
        hed_cli_say("serve: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_BROKEN;
    }
    fflush(NULL);
    execve(path, r->words, r->env.vars);
    if (!HED_HAVE_SERVER)
        return hed_cli_lacks("serve", "SERVER");
    hed_cli_say("serve: cannot start %s: %s; install heddle-server, or heddle again", path,
                strerror(errno));
    return HED_EXIT_BROKEN;
}

/* ---- questions to a running server ----------------------------------------------------------- */

/* A server that refuses to answer says so in a message of the protocol; one that refuses to do what
 * was asked, in its text. */
static int
print_answer(const struct request *r, const struct hed_buf *b)
{
    const struct hed_welcome *w = (const struct hed_welcome *)b->data;
    const bool is_text = b->size >= 2 && b->data[b->size - 1] == '\n';

    if (is_text && r->question.kind == HED_PREFACE_EVICT) {
        if (strncmp((const char *)b->data, "refused: ", 9) != 0)
            return HED_EXIT_OK;
        hed_cli_say("serve: %.*s", (int)b->size - 10, (const char *)b->data + 9);
        return HED_EXIT_FAILED;
    }
    if (is_text && (r->question.kind != HED_PREFACE_STATUS || b->data[0] == '{')) {
        fwrite(b->data, 1, b->size, stdout);
        return HED_EXIT_OK;
    }
    if (b->size == sizeof *w && w->head.head.kind == HED_MSG_ANSWER)
        hed_cli_say("serve: the server refuses to answer: %.*s", (int)sizeof w->text, w->text);
    else
        hed_cli_say("serve: the server closed the connection; its log may say why");
    return HED_EXIT_FAILED;
}

static int
ask_server(const struct request *r)
{
    struct hed_why why = {""};
    struct hed_buf text;
    int code;

    hed_buf_init(&text, HED_ASK_ANSWER_MAX);

    const int err = hed_ask(r->listen, &r->question, &text, &why);

    if (err == 0) {
        code = print_answer(r, &text);
    } else {
        hed_cli_say("serve: %s", why.text);
        code = err == HED_EINVAL ? HED_EXIT_USAGE : HED_EXIT_FAILED;
    }
    hed_buf_fini(&text);
    return code;
}

int
hed_cli_serve(int argc, char **argv)
{
    struct request r = {0};
    int code = parse_serve(&r, argc, argv);

    if (code == HED_EXIT_OK && r.help)
        fputs(usage, stdout);
    else if (code == HED_EXIT_OK)
        code = r.drain           ? hed_cli_drain(r.listen, r.to)
               : r.question.kind ? ask_server(&r)
                                 : become_server(&r);
    for (int i = 0; i < r.count; i++)
        free(r.words[i]);
    hed_env_fini(&r.env);
    return code;
}
