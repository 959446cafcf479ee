/* heddle cert SUBCOMMAND: a small certificate authority of one's own, for servers and clients that
 * meet over TCP. remote/wire/tls/cert.h makes the certificates.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/group.h"
#include "remote/remote.h"

#define CA_DAYS 3650
#define DAYS 365

static int make_ca(int argc, char **argv);
static int make_server(int argc, char **argv);
static int make_client(int argc, char **argv);
static int show_certificates(int argc, char **argv);

static const struct hed_cli_group group = {
    .name = "cert",
    .head = "usage: heddle cert COMMAND DIR [OPTION...]\n\n"
            "Creates the certificates with which servers and clients prove over TCP who they\n"
            "are. DIR holds the certificate authority (CA) and everything it has signed.\n\n",
    .tail = "\n"
            "  heddle cert ca certs\n"
            "  heddle cert server certs --host gpu1,10.0.0.5\n"
            "  heddle cert client certs --name alice\n"
            "\n"
            "`heddle cert COMMAND --help` explains each command.\n",
    .commands =
        {
            {"ca", make_ca, "create a certificate authority in a new folder"},
            {"server", make_server, "create a certificate for a server"},
            {"client", make_client, "create a certificate for a client"},
            {"show", show_certificates, "print what a certificate says"},
        },
};

int
hed_cli_cert(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, NULL);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The last is --name or --host. */
enum { OPT_HELP, OPT_DAYS, OPT_FORCE, OPT_SUBJECT };

static const struct hed_cli_opt named[] = {
    {"help", false}, {"days", true}, {"force", false}, {"name", true}, {NULL, false}};
static const struct hed_cli_opt hosted[] = {
    {"help", false}, {"days", true}, {"force", false}, {"host", true}, {NULL, false}};

static int
read_days(const char *command, const char *text, int *out)
{
    uint64_t n = 0;

    if (hed_parse_u64(text, &n) != 0 || n < 1 || n > HED_CERT_DAYS) {
        hed_cli_say("cert %s: --days '%s' is not a number from 1 to %d", command, text,
                    HED_CERT_DAYS);
        return HED_EXIT_USAGE;
    }
    *out = (int)n;
    return HED_EXIT_OK;
}

/* HED_EXIT_OK: r is filled in, or help was printed, and then r->folder is NULL. */
static int
read_words(int argc, char **argv, const struct hed_cli_opt *table, const char *usage,
           struct hed_cert_request *r)
{
    struct hed_cli_opts o = hed_cli_opts_over(table, argc, argv);
    const char **subject = r->kind == HED_CERT_SERVER ? &r->hosts : &r->name;
    char command[32];
    bool plain = false;
    int code = HED_EXIT_OK;

    snprintf(command, sizeof command, "cert %s", argv[0]);
    o.command = command;
    for (int option; (option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END;) {
        switch (option) {
        case OPT_HELP:
            fputs(usage, stdout);
            r->folder = NULL;
            return HED_EXIT_OK;
        case OPT_DAYS:
            code = read_days(argv[0], o.value, &r->days);
            break;
        case OPT_FORCE:
            r->force = true;
            break;
        case OPT_SUBJECT:
            *subject = o.value;
            break;
        case HED_CLI_OPERAND:
            if (r->folder) {
                hed_cli_say("cert %s: unexpected '%s'; give one folder", argv[0], o.value);
                code = HED_EXIT_USAGE;
            }
            r->folder = o.value;
            break;
        default:
            code = HED_EXIT_USAGE;
            break;
        }
        if (code != HED_EXIT_OK)
            return code;
    }
    if (r->folder && *subject)
        return HED_EXIT_OK;
    hed_cli_say("cert %s: no %s given; see heddle cert %s --help", argv[0],
                !r->folder                   ? "folder"
                : r->kind == HED_CERT_SERVER ? "--host"
                                             : "--name",
                argv[0]);
    return HED_EXIT_USAGE;
}

/* False: *code is the exit code. */
static bool
make_certificate(int argc, char **argv, const struct hed_cli_opt *table, const char *usage,
                 struct hed_cert_request *r, struct hed_cert_files *files, int *code)
{
    struct hed_why why = {""};

    *code = read_words(argc, argv, table, usage, r);
    if (*code != HED_EXIT_OK || !r->folder)
        return false;

    const int err = hed_cert_make(r, files, &why);

    if (err) {
        hed_cli_say("cert %s: %s", argv[0], why.text);
        *code = err == HED_EINVAL || err == HED_ERANGE || err == HED_ELIMIT ? HED_EXIT_USAGE
                                                                            : HED_EXIT_FAILED;
        return false;
    }
    printf("wrote ");
    hed_cli_put(stdout, files->cert);
    printf("\nwrote ");
    hed_cli_put(stdout, files->key);
    puts(" (secret)");
    return true;
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* Prints a file's name without its folder: it will be in another one, on another machine. */
static void
put_file_name(const char *before, const char *path)
{
    const char *slash = strrchr(path, '/');

    printf("%s", before);
    hed_cli_put(stdout, slash ? slash + 1 : path);
}

static int
make_ca(int argc, char **argv)
{
    static const char usage[] =
        "usage: heddle cert ca DIR [OPTION...]\n\n"
        "Creates a certificate authority: DIR/ca.pem and DIR/ca.key. Anybody who has the\n"
        "key can create certificates that all servers and clients of this authority\n"
        "accept, so keep it on one machine and do not copy it.\n\n"
        "  --name NAME   the authority's name (default: heddle CA)\n"
        "  --days N      the authority is valid for N days (default: 3650)\n"
        "  --force       replace an existing authority; its certificates become useless\n"
        "  -h, --help    show this help\n";
    struct hed_cert_request r = {.kind = HED_CERT_CA, .name = "heddle CA", .days = CA_DAYS};
    struct hed_cert_files files;
    int code;

    if (!make_certificate(argc, argv, named, usage, &r, &files, &code))
        return code;
    puts("\nNow run `heddle cert server` and `heddle cert client`. Copy ca.pem to each\n"
         "server and client, and keep ca.key here.");
    return HED_EXIT_OK;
}

static int
make_server(int argc, char **argv)
{
    static const char usage[] =
        "usage: heddle cert server DIR --host HOST[,HOST...] [OPTION...]\n\n"
        "Creates a certificate and key for a server, signed by the authority in DIR:\n"
        "DIR/server-HOST.pem and DIR/server-HOST.key.\n\n"
        "  --host HOST,...  the server's names and addresses, as clients write them in\n"
        "                   tcp://HOST:PORT\n"
        "  --days N         the certificate is valid for N days (default: 365)\n"
        "  --force          replace an existing certificate\n"
        "  -h, --help       show this help\n";
    struct hed_cert_request r = {.kind = HED_CERT_SERVER, .days = DAYS};
    struct hed_cert_files files;
    int code;

    if (!make_certificate(argc, argv, hosted, usage, &r, &files, &code))
        return code;
    printf("\nCopy both and ");
    hed_cli_put(stdout, files.ca);
    puts(" to the server, and start it there with");
    put_file_name("  heddle serve --listen tcp://HOST --tls-ca ", files.ca);
    put_file_name(" \\\n      --tls-cert ", files.cert);
    put_file_name(" --tls-key ", files.key);
    putchar('\n');
    return HED_EXIT_OK;
}

static int
make_client(int argc, char **argv)
{
    static const char usage[] =
        "usage: heddle cert client DIR --name NAME [OPTION...]\n\n"
        "Creates a certificate and key for a client, signed by the authority in DIR:\n"
        "DIR/client-NAME.pem and DIR/client-NAME.key.\n\n"
        "  --name NAME   the client's name, which appears in the server's log\n"
        "  --days N      the certificate is valid for N days (default: 365)\n"
        "  --force       replace an existing certificate\n"
        "  -h, --help    show this help\n";
    struct hed_cert_request r = {.kind = HED_CERT_CLIENT, .days = DAYS};
    struct hed_cert_files files;
    int code;

    if (!make_certificate(argc, argv, named, usage, &r, &files, &code))
        return code;
    printf("\nCopy both and ");
    hed_cli_put(stdout, files.ca);
    puts(" to the client, and name them in its\n"
         "~/.config/heddle/heddle.conf, with their full paths:");
    put_file_name("  tls_ca = .../", files.ca);
    put_file_name("\n  tls_cert = .../", files.cert);
    put_file_name("\n  tls_key = .../", files.key);
    putchar('\n');
    return HED_EXIT_OK;
}

static int
show_certificate(const char *path)
{
    struct hed_cert_facts f;
    struct hed_why why = {""};

    if (hed_cert_read(path, &f, &why)) {
        hed_cli_say("cert show: %s", why.text);
        return HED_EXIT_FAILED;
    }
    hed_cli_put(stdout, path);
    printf("\n  subject      %s\n  issuer       %s\n  use          %s\n", f.subject, f.issuer,
           f.use);
    if (f.hosts[0])
        printf("  hosts        %s\n", f.hosts);
    printf("  valid from   %s\n  valid until  %s (", f.from, f.until);
    if (f.days_left < 0)
        puts("expired)");
    else
        printf("%ld days left)\n", f.days_left);
    printf("  fingerprint  %s\n", f.fingerprint);
    return HED_EXIT_OK;
}

static int
show_certificates(int argc, char **argv)
{
    static const char usage[] =
        "usage: heddle cert show FILE...\n\n"
        "Prints whose certificate it is, who signed it, what it is for and how long it is\n"
        "valid.\n";
    static const struct hed_cli_opt table[] = {{"help", false}, {NULL, false}};
    struct hed_cli_opts o = hed_cli_opts_over(table, argc, argv);
    int code = HED_EXIT_OK;

    o.command = "cert show";

    const int option = hed_cli_opts_next(&o);

    if (option == OPT_HELP) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (option == HED_CLI_OPT_BAD)
        return HED_EXIT_USAGE;
    if (o.at >= argc) {
        hed_cli_say("cert show: no file given; see heddle cert show --help");
        return HED_EXIT_USAGE;
    }
    for (int i = o.at; i < argc; i++)
        if (show_certificate(argv[i]) != HED_EXIT_OK)
            code = HED_EXIT_FAILED;
    return code;
}
