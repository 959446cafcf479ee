/* SIGHUP: reads the options again, from the file and the command line, and applies what can change
 * while the server runs.
 *
 *   options ── each part reads ── all have succeeded? ──yes──> each part applies
 *                                       └──no──> nothing changes, and the log says why
 *
 * A part reads whatever may fail, and keeps it aside; applying cannot fail. So a bad file leaves
 * everything as it was. What is not in a part, such as addresses, changes with the next start; the
 * log says so.
 */
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/listener/listener.h"

/* ---- a list of options ----------------------------------------------------------------------- */

struct field {
    const char *name; /* of the option */
    size_t offset, size;
};

#define FIELD(name, member)                                   \
    {                                                         \
        name, offsetof(struct hed_server_options, member),    \
            sizeof(((struct hed_server_options *)0)->member), \
    }

static const struct field limit_fields[] = {
    FIELD("memory", memory),
    FIELD("host-memory", host_memory),
    FIELD("total-memory", total_memory),
    FIELD("worker-memory", worker_memory),
    FIELD("worker-memory", worker_memory_given),
    FIELD("worker-cpus", worker_cpus),
    FIELD("clients", clients),
    FIELD("channels", channels),
    FIELD("spare", spare),
    FIELD("rate", rate),
    FIELD("per-source", per_source),
    FIELD("startups", startups),
    FIELD("idle", idle_ms),
    FIELD("session", session_ms),
    FIELD("kernel-time", kernel_ms),
    FIELD("compile-time", compile_ms),
    FIELD("patience", patience_ms),
    FIELD("grace", grace_ms),
    FIELD("guest-timeout", guest_ms),
    FIELD("park-timeout", park_ms),
    FIELD("parked", parked),
    FIELD("parked-per-source", parked_source),
    FIELD("images-client", images_client),
    FIELD("images-total", images_total),
    FIELD("images-reserve", images_reserve),
};

static const struct field user_fields[] = {
    FIELD("show-clients", show_all), FIELD("allow-uid", allow_all), FIELD("allow-uid", uids),
    FIELD("allow-uid", uid_count),   FIELD("allow-gid", gids),      FIELD("allow-gid", gid_count),
};

static const struct field certificate_fields[] = {
    FIELD("tls-ca", tls.ca),        FIELD("tls-cert", tls.cert),     FIELD("tls-key", tls.key),
    FIELD("token-file", tls.token), FIELD("token-file", token_file), FIELD("tls-deny", deny_file),
};

/* Those that need a new start. */
static const struct field fixed_fields[] = {
    FIELD("listen", listen),
    FIELD("listen", listen_count),
    FIELD("gpu", gpu),
    FIELD("log", log),
    FIELD("images", images),
    FIELD("mode", mode),
    FIELD("insecure", tls.insecure),
    FIELD("confine", lets_kernels_roam),
    FIELD("sandbox", sandbox),
    FIELD("sandbox", sandbox_given),
    FIELD("worker-uids", worker_uids),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool
is_same(const struct field *f, const struct hed_server_options *a,
        const struct hed_server_options *b)
{
    return memcmp((const char *)a + f->offset, (const char *)b + f->offset, f->size) == 0;
}

/* Adds the names of options that differ to the text; each once. */
static void
name_changes(const struct field *fields, size_t count, const struct hed_server_options *a,
             const struct hed_server_options *b, struct hed_buf *text)
{
    const char *last = "";

    for (size_t i = 0; i < count; i++) {
        if (is_same(&fields[i], a, b) || strcmp(fields[i].name, last) == 0)
            continue;
        last = fields[i].name;
        hed_buf_addf(text, "%s--%s", text->size ? ", " : "", last);
    }
}

static void
copy_fields(const struct field *fields, size_t count, struct hed_server_options *to,
            const struct hed_server_options *from)
{
    for (size_t i = 0; i < count; i++)
        memcpy((char *)to + fields[i].offset, (const char *)from + fields[i].offset,
               fields[i].size);
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* Sessions that have begun keep the limits of their worker: --idle, --session, --kernel-time,
 * --compile-time, --channels, --worker-memory. What the listener itself decides changes for all. */
static void
apply_limits(struct hed_server *s, const struct hed_server_options *fresh)
{
    const bool rate = s->own.rate != fresh->rate;

    copy_fields(limit_fields, COUNT(limit_fields), &s->own, fresh);
    if (rate)
        hed_bucket_init(&s->rate, fresh->rate, hed_now_ns());
    s->ledger.total[HED_LEASE_SOCKET_HOST] = fresh->total_memory;
    s->pressure_ns = 0; /* look at once */
    hed_confine_limits(s);
    hed_spares_begin(s); /* with the new limits */
    hed_ledger_changed(&s->ledger);
}

/* For connections that come from now on. */
static void
apply_users(struct hed_server *s, const struct hed_server_options *fresh)
{
    copy_fields(user_fields, COUNT(user_fields), &s->own, fresh);
}

/* The files may have changed even if their names have not. */
static int
read_certificates(struct hed_server *s, const struct hed_server_options *fresh, struct hed_why *why)
{
    return hed_keeper_wanted(s->options) ? hed_keeper_prepare(s, fresh, why) : 0;
}

static void
apply_certificates(struct hed_server *s, const struct hed_server_options *fresh)
{
    copy_fields(certificate_fields, COUNT(certificate_fields), &s->own, fresh);
    if (hed_keeper_wanted(s->options))
        hed_info(SERVER, "SIGHUP: certificates were read again; they hold for new connections");
    hed_keeper_replace(s);
}

static const struct part {
    const char *name;
    /* Reads what may fail. NULL if there is nothing to read. */
    int (*read)(struct hed_server *s, const struct hed_server_options *fresh, struct hed_why *why);
    void (*apply)(struct hed_server *s, const struct hed_server_options *fresh);
} parts[] = {
    {"limits", NULL, apply_limits},
    {"users", NULL, apply_users},
    {"certificates", read_certificates, apply_certificates},
};

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

static void
say_names(const char *before, struct hed_buf *names, const char *after)
{
    const bool any = names->size > 0;

    hed_buf_addf(names, "%c", 0);
    if (any && !names->err)
        hed_info(SERVER, "SIGHUP: %s%s%s", before, (const char *)names->data, after);
}

static void
say_changes(const struct hed_server_options *old, const struct hed_server_options *fresh)
{
    struct hed_buf changed, later;

    hed_buf_init(&changed, 4096);
    hed_buf_init(&later, 4096);
    name_changes(limit_fields, COUNT(limit_fields), old, fresh, &changed);
    name_changes(user_fields, COUNT(user_fields), old, fresh, &changed);
    name_changes(certificate_fields, COUNT(certificate_fields), old, fresh, &changed);
    name_changes(fixed_fields, COUNT(fixed_fields), old, fresh, &later);
    if (!changed.size && !later.size)
        hed_info(SERVER, "SIGHUP: the options have not changed");
    say_names("changed ", &changed, "");
    say_names("", &later, " will change with the next start");
    hed_buf_fini(&changed);
    hed_buf_fini(&later);
}

static int
read_parts(struct hed_server *s, const struct hed_server_options *fresh, struct hed_why *why)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct hed_why reason = {""};
        const int err = parts[i].read ? parts[i].read(s, fresh, &reason) : 0;

        if (err) {
            hed_why_set(why, "%s: %s", parts[i].name, reason.text);
            return err;
        }
    }
    return 0;
}

void
hed_server_reload(struct hed_server *s)
{
    static struct hed_server_options fresh; /* large; the listener has one thread */
    struct hed_why why = {""};
    int err = hed_server_options_read(&fresh, s->word_count, s->words, &why);

    if (!err)
        err = read_parts(s, &fresh, &why);
    if (err) {
        hed_error(SERVER, "SIGHUP: nothing has changed, because the options are wrong: %s",
                  why.text);
        return;
    }
    say_changes(&s->own, &fresh);
    for (size_t i = 0; i < COUNT(parts); i++)
        parts[i].apply(s, &fresh);
}
