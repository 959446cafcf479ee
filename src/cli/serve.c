/* heddle serve: becomes heddled, the server, which lies beside heddle's libraries; or asks one that
 * runs what it is doing. The words are looked at here as in every command; what their values mean,
 * heddled knows (src/server/listener/options.c), except for the settings, which the command checks.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/place.h"
#include "core/config.h"
#include "wire/conn.h"
#include "wire/wire.h"

#define WORDS_MAX 128                /* of heddled's command line */
#define STATUS_MAX (16u << 20)       /* bytes */
#define STATUS_MS 5000               /* without a byte */
#define DEFAULT_FOLDER "/run/heddle" /* for root; others: $XDG_RUNTIME_DIR */

static const char usage[] =
    "usage: heddle serve [OPTION...]\n"
    "       heddle serve --status [--listen ADDRESS]\n"
    "\n"
    "Serves this machine's GPUs to programs that run elsewhere, each in a process of\n"
    "its own: heddle run --gpu ADDRESS -- PROGRAM. Stays in the foreground.\n"
    "\n"
    "  --listen ADDRESS    shm:PATH or unix:PATH (one socket serves both) or\n"
    "                      tcp://[HOST][:PORT]; may be given several times. Default:\n"
    "                      shm:$XDG_RUNTIME_DIR/heddle.sock, or, for root,\n"
    "                      shm:/run/heddle/heddle.sock\n"
    "  --gpu WHERE         where work runs: gpu, cpu[:DEVICES], auto, null\n"
    "  --mode MODE         of the socket's file; default 0600\n"
    "  --allow-uid LIST    users that may connect besides root and the server's own\n"
    "                      user: numbers or names, or all\n"
    "  --allow-gid LIST    groups likewise\n"
    "  --memory SIZE       device memory that a client may have of each device\n"
    "  --host-memory SIZE  pinned memory that a client may have\n"
    "  --clients N         clients at once; default 256\n"
    "  --channels N        connections of one client; default 1024\n"
    "  --rate N            new clients a second; default 256, 0 for any number\n"
    "  --idle SECONDS      end clients that say nothing for so long; default: never\n"
    "  --patience SECONDS  how long a connection may take to say what it is;\n"
    "                      default 5\n"
    "  --grace SECONDS     how long clients have to finish when the server stops;\n"
    "                      default 5\n"
    "  --tls-ca FILE       certificate by which clients are known (TCP)\n"
    "  --tls-cert FILE     the server's certificate\n"
    "  --tls-key FILE      its key\n"
    "  --token-file FILE   a token that clients without a certificate must show\n"
    "  --insecure          TCP without TLS: anybody who can reach it may use the GPU\n"
    "  --images DIR        where clients' code is kept for the next ones; none\n"
    "  --log SPEC          what to log: level[,component=level...]; default\n"
    "                      warn,server=info\n"
    "  --status            ask the server at ADDRESS what it is doing: JSON\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit codes: 0 stopped by a signal, 1 failed, 2 wrong option or setting,\n"
    "125 heddle is not installed properly.\n";

enum { OPT_LISTEN, OPT_GPU, OPT_LOG, OPT_STATUS, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_LISTEN] = {"listen", true},
    [OPT_GPU] = {"gpu", true},
    [OPT_LOG] = {"log", true},
    [OPT_STATUS] = {"status", false},
    [OPT_HELP] = {"help", false},
    /* These are heddled's alone. */
    {"mode", true},
    {"allow-uid", true},
    {"allow-gid", true},
    {"memory", true},
    {"host-memory", true},
    {"clients", true},
    {"channels", true},
    {"rate", true},
    {"idle", true},
    {"patience", true},
    {"grace", true},
    {"tls-ca", true},
    {"tls-cert", true},
    {"tls-key", true},
    {"token-file", true},
    {"insecure", false},
    {"images", true},
    {NULL, false},
};

struct request {
    struct hed_env env;
    struct hed_config config;
    char *words[WORDS_MAX + 1]; /* of heddled, NULL at the end; owned */
    int count;
    const char *listen; /* the first one; NULL: none */
    bool gpu, status, help;
};

/* ---- the words ------------------------------------------------------------------------------- */

static int
add_word(struct request *r, const char *name, const char *value)
{
    char *word = NULL;

    if (r->count == WORDS_MAX) {
        hed_cli_say("serve: too many options");
        return HED_EXIT_USAGE;
    }
    if (asprintf(&word, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0) {
        hed_cli_say("serve: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_FAILED;
    }
    r->words[r->count++] = word;
    return HED_EXIT_OK;
}

/* A setting as `heddle run` takes it. */
static int
take_setting(struct request *r, const char *key, const char *value)
{
    struct hed_why why = {""};

    if (hed_address_is(value)) {
        hed_cli_say("serve: --gpu: %s is a server; this one needs a place where work runs", value);
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
take_option(struct request *r, int option, const char *value)
{
    switch (option) {
    case OPT_GPU:
        r->gpu = true;
        return take_setting(r, "gpu", value);
    case OPT_LOG:
        return take_setting(r, "log", value);
    case OPT_STATUS:
        r->status = true;
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
parse(struct request *r, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_why why = {""};
    int option;

    hed_config_init(&r->config);
    hed_env_init(&r->env, environ);
    r->words[r->count++] = strdup("heddled");
    while (!r->help && (option = hed_cli_opts_next(&o)) != HED_CLI_OPT_END) {
        const int code =
            option == HED_CLI_OPT_BAD ? HED_EXIT_USAGE : take_option(r, option, o.value);

        if (code)
            return code;
    }
    if (r->help)
        return HED_EXIT_OK;
    if (!hed_cli_opts_no_operands(&o))
        return HED_EXIT_USAGE;
    if (hed_cli_settings(&r->config, &r->env, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

/* ---- serving --------------------------------------------------------------------------------- */

static int
serve(struct request *r)
{
    struct hed_place place;
    struct hed_why why = {""};
    char path[PATH_MAX];
    /* A setting that sends this user's programs to a server is not meant for the server. */
    const char *gpu = hed_address_is(r->config.gpu) ? "auto" : r->config.gpu;
    int code;

    if (hed_place_find(&place, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
        return HED_EXIT_BROKEN;
    }
    if (hed_config_gpu_is(gpu, "cpu") &&
        !hed_place_plugin(&place, "backend-cpu", path, sizeof path)) {
        hed_cli_say("serve: --gpu %s: there is no %s: heddle was built without LLVM", gpu, path);
        return HED_EXIT_BROKEN;
    }
    code = add_word(r, "gpu", gpu);
    if (!code && r->config.log[0])
        code = add_word(r, "log", r->config.log);
    if (code)
        return code;

    const int n = snprintf(path, sizeof path, "%s/heddled", place.dir);

    if (n < 0 || (size_t)n >= sizeof path || r->env.failed || !r->words[0]) {
        hed_cli_say("serve: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_BROKEN;
    }
    fflush(NULL);
    execve(path, r->words, r->env.vars);
    hed_cli_say("serve: %s: %s", path, strerror(errno));
    return HED_EXIT_BROKEN;
}

/* ---- the status of one that runs ------------------------------------------------------------- */

static int
find_address(const struct request *r, struct hed_address *out, struct hed_why *why)
{
    const char *folder = geteuid() == 0 ? DEFAULT_FOLDER : getenv("XDG_RUNTIME_DIR");
    char text[256];

    if (r->listen)
        return hed_address_parse(r->listen, out, why);
    if (!folder || folder[0] != '/') {
        hed_why_set(why, "where is it? XDG_RUNTIME_DIR, the default's folder, is not set: give its "
                         "address, such as --listen shm:/tmp/gpu.sock");
        return HED_EINVAL;
    }
    (void)snprintf(text, sizeof text, "shm:%s/heddle.sock", folder);
    return hed_address_parse(text, out, why);
}

static int
read_all(struct hed_conn *c, struct hed_buf *b)
{
    char piece[16384];
    ssize_t n;

    do {
        n = hed_conn_read_some(c, piece, 1, sizeof piece, STATUS_MS);
        if (n > 0)
            hed_buf_add(b, piece, (size_t)n);
    } while (n > 0 && !b->err);
    /* The end of the connection is the end of the text. */
    return b->err ? b->err : n == HED_EIO || n == 0 ? 0 : (int)n;
}

/* Somebody who may not is told so in the words of the protocol. */
static int
print_status(const struct hed_buf *b)
{
    const struct hed_welcome *w = (const struct hed_welcome *)b->data;

    if (b->size >= 2 && b->data[0] == '{' && b->data[b->size - 1] == '\n') {
        fwrite(b->data, 1, b->size, stdout);
        return HED_EXIT_OK;
    }
    if (b->size == sizeof *w && w->head.head.kind == HED_MSG_ANSWER)
        hed_cli_say("serve: the server refuses: %.*s", (int)sizeof w->text, w->text);
    else
        hed_cli_say("serve: the server hung up");
    return HED_EXIT_FAILED;
}

static int
ask_status(const struct request *r)
{
    struct hed_preface preface = {.kind = HED_PREFACE_STATUS};
    struct hed_address address;
    struct hed_conn *c = NULL;
    struct hed_why why = {""};
    struct hed_buf text;
    int code = HED_EXIT_FAILED;

    memcpy(preface.magic, HED_PREFACE_MAGIC, sizeof preface.magic);
    if (find_address(r, &address, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
        return HED_EXIT_USAGE;
    }
    if (address.transport == HED_TRANSPORT_TCP) {
        hed_cli_say("serve: --status: a server tells it over its socket in the file system only: "
                    "--listen shm:PATH");
        return HED_EXIT_USAGE;
    }
    hed_buf_init(&text, STATUS_MAX);
    if (hed_conn_open(&address, NULL, &preface, STATUS_MS, &c, &why) != 0) {
        hed_cli_say("serve: %s", why.text);
    } else {
        const int err = read_all(c, &text);

        if (err)
            hed_cli_say("serve: the server does not answer: %s", hed_err_text(err));
        else
            code = print_status(&text);
    }
    hed_conn_close(c);
    hed_buf_fini(&text);
    return code;
}

int
hed_cli_serve(int argc, char **argv)
{
    struct request r = {0};
    int code = parse(&r, argc, argv);

    if (code == HED_EXIT_OK && r.help)
        fputs(usage, stdout);
    else if (code == HED_EXIT_OK)
        code = r.status ? ask_status(&r) : serve(&r);
    for (int i = 0; i < r.count; i++)
        free(r.words[i]);
    hed_env_fini(&r.env);
    return code;
}
