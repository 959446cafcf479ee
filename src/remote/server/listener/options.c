/* heddled's options. No file is opened here. */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define CHANNELS_MAX 65536
#define SPARE_MAX 64
#define RATE_MAX 1000000
#define STARTUPS_MAX 4096
#define CPUS_MAX 65536
#define SECONDS_MAX 2000000 /* twice as many milliseconds fit into 32 bits */

typedef int (*take_fn)(struct hed_server_options *o, const char *value, struct hed_why *why);

static int
parse_number(const char *value, uint64_t least, uint64_t most, uint32_t *out, struct hed_why *why)
{
    uint64_t n = 0;

    if (hed_parse_u64(value, &n) != 0 || n < least || n > most) {
        hed_why_set(why, "'%.64s' is not a number from %llu to %llu", value,
                    (unsigned long long)least, (unsigned long long)most);
        return HED_EINVAL;
    }
    *out = (uint32_t)n;
    return 0;
}

static int
parse_size(const char *value, uint64_t *out, struct hed_why *why)
{
    if (hed_parse_size(value, out) == 0)
        return 0;
    hed_why_set(why, "'%.64s' is not a size like 512M or 20G", value);
    return HED_EINVAL;
}

static int
parse_text(const char *value, char *out, size_t size, struct hed_why *why)
{
    if (value[0] && hed_str_copy(out, size, value))
        return 0;
    hed_why_set(why, value[0] ? "longer than %zu characters" : "must not be empty", size - 1);
    return HED_EINVAL;
}

/* "tcp://" and "tcp://:PORT" listen on this machine only, so that nobody opens the server to the
 * network by mistake. */
static int
take_listen(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    char text[512];
    const bool no_host = strcmp(value, "tcp://") == 0 || strncmp(value, "tcp://:", 7) == 0;

    if (o->listen_count == HED_LISTENERS_MAX) {
        hed_why_set(why, "more than %d addresses", HED_LISTENERS_MAX);
        return HED_ELIMIT;
    }
    (void)snprintf(text, sizeof text, "%s%s", no_host ? "tcp://127.0.0.1" : "",
                   no_host ? value + 6 : value);

    const int err = hed_address_parse(text, &o->listen[o->listen_count], why);

    o->listen_count += err == 0;
    return err;
}

/* Refuses the address of a server: it would only be one more hop, or the server itself. */
static int
take_gpu(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    if (hed_address_is(value)) {
        hed_why_set(why, "'%.200s' is another server; a server needs gpu, cpu or null", value);
        return HED_EINVAL;
    }
    return parse_text(value, o->gpu, sizeof o->gpu, why);
}

static int
take_mode(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    char *end;
    const unsigned long mode = strtoul(value, &end, 8);

    if (value[0] < '0' || value[0] > '7' || *end || mode > 0777) {
        hed_why_set(why, "'%.64s' is not a mode like 0600 or 0660", value);
        return HED_EINVAL;
    }
    o->mode = (uint32_t)mode;
    return 0;
}

static int
refuse_more_ids(struct hed_why *why)
{
    hed_why_set(why, "more than %d users or groups", HED_ALLOW_MAX);
    return HED_ELIMIT;
}

/* Parses one user or group, given by number or name. */
static int
parse_id(const char *item, bool group, uint32_t *out, struct hed_why *why)
{
    uint64_t n = 0;

    if (hed_parse_u64(item, &n) == 0 && n < UINT32_MAX) {
        *out = (uint32_t)n;
        return 0;
    }

    const struct passwd *p = group ? NULL : getpwnam(item);
    const struct group *g = group ? getgrnam(item) : NULL;

    if (!p && !g) {
        hed_why_set(why, "there is no %s '%.64s' on this machine", group ? "group" : "user", item);
        return HED_ENOTFOUND;
    }
    *out = p ? p->pw_uid : g->gr_gid;
    return 0;
}

/* Parses a list such as "1000,alice" and adds it to `list`. */
static int
parse_ids(const char *value, bool group, uint32_t *list, uint32_t *count, struct hed_why *why)
{
    char item[128];

    for (const char *at = value; at;) {
        const size_t n = strcspn(at, ",");

        if (*count == HED_ALLOW_MAX)
            return refuse_more_ids(why);
        (void)snprintf(item, sizeof item, "%.*s", (int)n, at);

        const int err = parse_id(item, group, &list[*count], why);

        if (err)
            return err;
        (*count)++;
        at = at[n] ? at + n + 1 : NULL;
    }
    return 0;
}

static int
take_allow_uid(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    if (strcmp(value, "all") == 0) {
        o->allow_all = true;
        return 0;
    }
    return parse_ids(value, false, o->uids, &o->uid_count, why);
}

static int
take_allow_gid(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_ids(value, true, o->gids, &o->gid_count, why);
}

static int
take_memory_limit(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->memory, why);
}

static int
take_host_memory(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->host_memory, why);
}

static int
take_total_memory(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->total_memory, why);
}

static int
take_parked(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, HED_LEDGER_WORKERS, &o->parked, why);
}

static int
take_parked_source(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, HED_LEDGER_WORKERS, &o->parked_source, why);
}

static int
take_show_clients(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    if (strcmp(value, "all") != 0 && strcmp(value, "own") != 0) {
        hed_why_set(why, "'%.64s' is neither all nor own", value);
        return HED_EINVAL;
    }
    o->show_all = value[0] == 'a';
    return 0;
}

static int
take_images_client(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->images_client, why);
}

static int
take_images_total(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->images_total, why);
}

static int
take_images_reserve(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->images_reserve, why);
}

static int
take_clients(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 1, HED_LEDGER_WORKERS, &o->clients, why);
}

static int
take_channels(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 1, CHANNELS_MAX, &o->channels, why);
}

static int
take_spare(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, SPARE_MAX, &o->spare, why);
}

static int
take_rate(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, RATE_MAX, &o->rate, why);
}

static int
take_startups(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 1, STARTUPS_MAX, &o->startups, why);
}

static int
take_per_source(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, HED_LEDGER_WORKERS, &o->per_source, why);
}

static int
parse_seconds(const char *value, uint64_t least, uint32_t *out_ms, struct hed_why *why)
{
    uint32_t seconds = 0;
    const int err = parse_number(value, least, SECONDS_MAX, &seconds, why);

    if (!err)
        *out_ms = seconds * 1000;
    return err;
}

static int
take_idle(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->idle_ms, why);
}

static int
take_session(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->session_ms, why);
}

static int
take_kernel_time(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->kernel_ms, why);
}

static int
take_compile_time(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->compile_ms, why);
}

static int
take_patience(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 1, &o->patience_ms, why);
}

static int
take_grace(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->grace_ms, why);
}

static int
take_guest_timeout(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->guest_ms, why);
}

static int
take_park_timeout(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_seconds(value, 0, &o->park_ms, why);
}

static int
take_tls_ca(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->tls.ca, sizeof o->tls.ca, why);
}

static int
take_tls_cert(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->tls.cert, sizeof o->tls.cert, why);
}

static int
take_tls_key(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->tls.key, sizeof o->tls.key, why);
}

/* This process must not have the secret that is in it, so it only looks at the file from outside;
 * see remote/server/gate. */
static int
take_token_file(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    struct stat st;

    if (stat(value, &st) != 0 || access(value, R_OK) != 0) {
        hed_why_set(why, "%.300s: %m", value);
        return HED_EIO;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        hed_why_set(why, "%.300s: other users may read it; set its mode to 0600", value);
        return HED_EINVAL;
    }
    return parse_text(value, o->token_file, sizeof o->token_file, why);
}

static int
take_tls_deny(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->deny_file, sizeof o->deny_file, why);
}

static int
take_insecure(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    o->tls.insecure = true;
    return 0;
}

/* With "none", every client sends its images again. */
static int
take_images(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    if (strcmp(value, "none") == 0) {
        o->images[0] = '\0';
        return 0;
    }
    return parse_text(value, o->images, sizeof o->images, why);
}

static int
take_sandbox(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    static const char *const modes[] = {
        [HED_SANDBOX_AUTO] = "auto", [HED_SANDBOX_REQUIRE] = "require", [HED_SANDBOX_OFF] = "off"};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(value, modes[i]) != 0)
            continue;
        o->sandbox = (enum hed_sandbox_mode)i;
        o->sandbox_given = true;
        return 0;
    }
    hed_why_set(why, "'%.64s' is not auto, require or off", value);
    return HED_EINVAL;
}

static int
take_confine(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    o->lets_kernels_roam = strcmp(value, "no") == 0;
    if (o->lets_kernels_roam || strcmp(value, "yes") == 0)
        return 0;
    hed_why_set(why, "'%.64s' is not yes or no", value);
    return HED_EINVAL;
}

static int
take_worker_uids(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    char first[16];
    const size_t n = strcspn(value, "-");
    uint64_t from = 0, to = 0;

    (void)snprintf(first, sizeof first, "%.*s", n < sizeof first ? (int)n : 0, value);
    if (value[n] != '-' || hed_parse_u64(first, &from) != 0 ||
        hed_parse_u64(value + n + 1, &to) != 0 || from == 0 || to < from || to >= UINT32_MAX) {
        hed_why_set(why, "'%.64s' is not a range of users like 70000-71023", value);
        return HED_EINVAL;
    }
    o->worker_uids[0] = (uint32_t)from;
    o->worker_uids[1] = (uint32_t)to;
    return 0;
}

static int
take_worker_memory(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_size(value, &o->worker_memory, why);
}

static int
take_worker_cpus(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_number(value, 0, CPUS_MAX, &o->worker_cpus, why);
}

static int
take_log(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->log, sizeof o->log, why);
}

/* Read before all other options (config.c). */
static int
take_options_file(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    return parse_text(value, o->config, sizeof o->config, why);
}

static int
take_help(struct hed_server_options *o, const char *value, struct hed_why *why)
{
    o->help = true;
    return 0;
}

static const struct option {
    const char *name;
    bool takes_value;
    take_fn take;
} table[] = {
    {"listen", true, take_listen},
    {"gpu", true, take_gpu},
    {"mode", true, take_mode},
    {"allow-uid", true, take_allow_uid},
    {"allow-gid", true, take_allow_gid},
    {"memory", true, take_memory_limit},
    {"host-memory", true, take_host_memory},
    {"total-memory", true, take_total_memory},
    {"clients", true, take_clients},
    {"channels", true, take_channels},
    {"spare", true, take_spare},
    {"rate", true, take_rate},
    {"startups", true, take_startups},
    {"per-source", true, take_per_source},
    {"idle", true, take_idle},
    {"patience", true, take_patience},
    {"session", true, take_session},
    {"kernel-time", true, take_kernel_time},
    {"compile-time", true, take_compile_time},
    {"grace", true, take_grace},
    {"guest-timeout", true, take_guest_timeout},
    {"park-timeout", true, take_park_timeout},
    {"parked", true, take_parked},
    {"parked-per-source", true, take_parked_source},
    {"tls-ca", true, take_tls_ca},
    {"tls-cert", true, take_tls_cert},
    {"tls-key", true, take_tls_key},
    {"token-file", true, take_token_file},
    {"tls-deny", true, take_tls_deny},
    {"insecure", false, take_insecure},
    {"show-clients", true, take_show_clients},
    {"images", true, take_images},
    {"images-client", true, take_images_client},
    {"images-total", true, take_images_total},
    {"images-reserve", true, take_images_reserve},
    {"sandbox", true, take_sandbox},
    {"confine", true, take_confine},
    {"worker-uids", true, take_worker_uids},
    {"worker-memory", true, take_worker_memory},
    {"worker-cpus", true, take_worker_cpus},
    {"log", true, take_log},
    {"config", true, take_options_file},
    {"help", false, take_help},
};

static const struct option *
find_server_option(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0)
            return &table[i];
    }
    return NULL;
}

int
hed_server_option_set(struct hed_server_options *o, const char *name, const char *value,
                      struct hed_why *why)
{
    const struct option *t = find_server_option(name, strlen(name));
    const bool is_flag = t && !t->takes_value;

    if (!t || t->take == take_help || t->take == take_options_file) {
        hed_why_set(why, "there is no option '%.100s' for this file; see heddle-serve(1)", name);
        return HED_ENOTFOUND;
    }
    if (is_flag && strcmp(value, "no") == 0)
        return 0;
    if (is_flag && strcmp(value, "yes") != 0) {
        hed_why_set(why, "%s: '%.64s' is not yes or no", t->name, value);
        return HED_EINVAL;
    }

    struct hed_why reason = {""};
    const int err = t->take(o, is_flag ? NULL : value, &reason);

    if (err)
        hed_why_set(why, "%s: %s", t->name, reason.text);
    return err;
}

const char *
hed_server_option_config(int count, char **words)
{
    const char *path = NULL;

    for (int i = 0; i < count; i++) {
        const char *word = strncmp(words[i], "--", 2) == 0 ? words[i] + 2 : "";
        const size_t n = strcspn(word, "=");
        const struct option *t = find_server_option(word, n);
        const bool two_words = t && t->takes_value && !word[n];

        if (t && t->take == take_options_file)
            path = word[n] ? word + n + 1 : i + 1 < count ? words[i + 1] : path;
        i += two_words;
    }
    return path;
}

int
hed_server_option_take(struct hed_server_options *o, int count, char **words, int *used,
                       struct hed_why *why)
{
    const char *word = strcmp(words[0], "-h") == 0 ? "--help" : words[0];
    const size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    const struct option *t = find_server_option(word + 2, n);
    const char *value = t && word[2 + n] == '=' ? word + 2 + n + 1 : NULL;
    struct hed_why reason = {""};

    *used = 1;
    if (n == 0 || !t) {
        hed_why_set(why, "there is no option '%.100s'; see heddle serve --help", word);
        return HED_ENOTFOUND;
    }
    if (t->takes_value && !value && count > 1) {
        value = words[1];
        *used = 2;
    }
    if (t->takes_value != (value != NULL)) {
        hed_why_set(why, "--%s %s", t->name, value ? "takes no value" : "needs a value");
        return HED_EINVAL;
    }

    const int err = t->take(o, value, &reason);

    if (err)
        hed_why_set(why, "--%s: %s", t->name, reason.text);
    return err;
}
