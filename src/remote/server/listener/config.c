/* Where options come from: defaults, then the file that --config names, then the command line; and
 * which of them go together. The file has lines `name = value` with the names of the options,
 * comments that begin with #, and blank lines. A flag is `yes` or `no`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/folder.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define CLIENTS_DEFAULT 512
#define CHANNELS_DEFAULT 1024
#define RATE_DEFAULT 512
#define STARTUPS_DEFAULT 1024
#define PATIENCE_MS 15000
#define GRACE_MS 5000
#define GUEST_MS 30000
#define PARK_MS 600000
#define PARKED_DEFAULT 256
#define PARKED_SOURCE_DEFAULT 64
#define COMPILE_MS 600000
/* Neither of users, nor of services (systemd), nor of containers (subuid). */
#define IMAGES_CLIENT (UINT64_C(16) << 30)
#define IMAGES_TOTAL (UINT64_C(64) << 30)
#define IMAGES_RESERVE (UINT64_C(1) << 30)
#define WORKER_UID_FIRST 70000
#define FILE_MAX 65536  /* bytes of the file */
#define LINE_BYTES 8192 /* bytes of a line of it */

/* ---- the file -------------------------------------------------------------------------------- */

static int
parse_config_line(struct hed_server_options *o, char *line, struct hed_why *why)
{
    char *key = hed_str_trim(line);
    char *equals = strchr(key, '=');

    if (!key[0] || key[0] == '#')
        return 0;
    if (!equals) {
        hed_why_set(why, "'%.64s' is not `name = value`", key);
        return HED_EFORMAT;
    }
    *equals = '\0';
    return hed_server_option_set(o, hed_str_trim(key), hed_str_trim(equals + 1), why);
}

int
hed_server_config_parse(struct hed_server_options *o, const char *text, size_t size,
                        const char *name, struct hed_why *why)
{
    char line[LINE_BYTES];
    const char *end = text + size;

    for (unsigned number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((newline ? newline : end) - text);
        struct hed_why reason = {""};
        int err = HED_EFORMAT;

        if (length >= sizeof line || memchr(text, 0, length)) {
            hed_why_set(&reason, "the line is too long, or has a zero byte");
        } else {
            memcpy(line, text, length);
            line[length] = '\0';
            err = parse_config_line(o, line, &reason);
        }
        if (err) {
            hed_why_set(why, "%.200s:%u: %s", name, number, reason.text);
            return err;
        }
        text += length + (newline ? 1 : 0);
    }
    return 0;
}

/* Reads the file. With '-' before its name it may be missing. */
static int
read_config(struct hed_server_options *o, const char *path, struct hed_why *why)
{
    static char text[FILE_MAX + 1]; /* the listener has one thread */
    const bool may_miss = path[0] == '-';
    /* A FIFO without a writer must not block. */
    const int fd = open(path + may_miss, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    size_t size = 0;
    ssize_t n = 1;

    if (fd < 0 && may_miss && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        hed_why_set(why, "--config: %.300s: %s", path + may_miss,
                    fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            (void)close(fd);
        return HED_EIO;
    }
    while (n > 0 && size < sizeof text) {
        n = read(fd, text + size, sizeof text - size);
        size += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    if (n < 0 || size > FILE_MAX) {
        hed_why_set(why, "--config: %.300s: %s", path + may_miss,
                    n < 0 ? "it cannot be read" : "it is too long");
        return HED_EIO;
    }
    return hed_server_config_parse(o, text, size, path + may_miss, why);
}

/* ---- defaults, and what goes together -------------------------------------------------------- */

/* Can somebody on this machine ask the server? QEMU's sockets are not for that. */
static bool
has_socket(const struct hed_server_options *o)
{
    for (uint32_t i = 0; i < o->listen_count; i++)
        if (o->listen[i].transport->id != HED_TRANSPORT_VM)
            return true;
    return false;
}

static int
default_listen(struct hed_server_options *o, struct hed_why *why)
{
    const char *folder = geteuid() == 0 ? "/run/heddle" : secure_getenv("XDG_RUNTIME_DIR");
    char text[256];

    if (o->listen_count == HED_LISTENERS_MAX) {
        hed_why_set(why, "more than %d addresses", HED_LISTENERS_MAX);
        return HED_ELIMIT;
    }
    if (!folder || folder[0] != '/') {
        hed_why_set(why,
                    "XDG_RUNTIME_DIR is not set, so there is no default address; give one, such as "
                    "--listen shm:/tmp/gpu.sock");
        return HED_EINVAL;
    }
    if (geteuid() == 0)
        (void)mkdir(folder, 0755); /* systemd may have made it; if not, listening fails */
    (void)snprintf(text, sizeof text, "shm:%s/heddle.sock", folder);
    return hed_address_parse(text, &o->listen[o->listen_count++], why);
}

static void
default_images(char *out, size_t size)
{
    if (geteuid() == 0)
        (void)snprintf(out, size, "/var/cache/heddle/images");
    else
        (void)hed_cache_folder("images", out, size);
}

static int
check_tcp(const struct hed_server_options *o, struct hed_why *why)
{
    const struct hed_tls *t = &o->tls;
    const char *const files[] = {t->ca, t->cert, t->key};

    if (t->insecure && (t->ca[0] || t->cert[0] || t->key[0]))
        hed_why_set(
            why, "--insecure turns TLS off, but certificates are given; leave out one of the two");
    else if (t->insecure && o->token_file[0])
        hed_why_set(why,
                    "--insecure lets everybody in who can connect, and would send the token of "
                    "--token-file in the clear; leave out one of the two");
    else if (t->insecure)
        return 0;
    else if (!hed_tls_built())
        hed_why_set(
            why, "TCP needs TLS, but this heddle was built without it; use --insecure on a network "
                 "that you trust");
    else if (!t->cert[0] || !t->key[0])
        hed_why_set(
            why, "TCP needs TLS; add --tls-cert and --tls-key (`heddle cert` makes the files), or "
                 "--insecure on a network that you trust");
    else if (!t->ca[0] && !o->token_file[0])
        hed_why_set(
            why, "every client could connect over TCP; add --tls-ca, which identifies clients, or "
                 "--token-file");
    else {
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
            if (files[i][0] && access(files[i], R_OK) != 0) {
                hed_why_set(why, "%.300s: %m", files[i]);
                return HED_ENOTFOUND;
            }
        }
        return 0;
    }
    return HED_EINVAL;
}

static int
check_options(struct hed_server_options *o, struct hed_why *why)
{
    bool tcp = false;

    for (uint32_t i = 0; i < o->listen_count; i++)
        tcp = tcp || !o->listen[i].transport->link->private;
    o->tls.token = o->token_file[0] != '\0';
    return tcp ? check_tcp(o, why) : 0;
}

int
hed_server_options_read(struct hed_server_options *o, int count, char **words, struct hed_why *why)
{
    const char *config = hed_server_option_config(count, words);
    int err = 0;

    memset(o, 0, sizeof *o);
    (void)hed_str_copy(o->gpu, sizeof o->gpu, "auto");
    (void)hed_str_copy(o->log, sizeof o->log, "warn,server=info");
    o->mode = 0600;
    o->host_memory = o->total_memory = o->worker_memory = HED_NOT_GIVEN;
    o->clients = CLIENTS_DEFAULT;
    o->channels = CHANNELS_DEFAULT;
    o->rate = RATE_DEFAULT;
    o->startups = STARTUPS_DEFAULT;
    o->patience_ms = PATIENCE_MS;
    o->grace_ms = GRACE_MS;
    o->guest_ms = GUEST_MS;
    o->park_ms = PARK_MS;
    o->parked = PARKED_DEFAULT;
    o->parked_source = PARKED_SOURCE_DEFAULT;
    o->compile_ms = COMPILE_MS;
    o->images_client = IMAGES_CLIENT;
    o->images_total = IMAGES_TOTAL;
    o->images_reserve = IMAGES_RESERVE;
    o->worker_uids[0] = WORKER_UID_FIRST;
    o->worker_uids[1] = WORKER_UID_FIRST + HED_LEDGER_WORKERS;
    default_images(o->images, sizeof o->images);
    if (config)
        err = read_config(o, config, why);
    for (int i = 0, used; !err && i < count; i += used)
        err = hed_server_option_take(o, count - i, words + i, &used, why);
    if (!err && !o->help && !has_socket(o))
        err = default_listen(o, why);
    hed_memory_defaults(o, "");
    return err || o->help ? err : check_options(o, why);
}
