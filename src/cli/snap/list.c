/* heddle snap list: the snapshots of a folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"

#define OUTPUT_MAX (64u << 20)

static const char usage[] =
    "usage: heddle snap list [FOLDER] [OPTION...]\n"
    "\n"
    "Shows the snapshots of a folder, the newest first: epoch, time, how much memory\n"
    "and process image a snapshot holds, how much of that its own file stores, on how\n"
    "many older files it depends, and whether it can be used. * marks the one that\n"
    "was published last.\n"
    "\n"
    "  --json       print JSON\n"
    "  -h, --help   show this help\n"
    "\n"
    "The states are \"ok\": it can be restored; \"part\": what it needs was removed, so\n"
    "it cannot be, but newer ones need what is in it; otherwise the snapshot is\n"
    "damaged, and a line below the table says what is wrong. Payloads are not read:\n"
    "`heddle snap verify` does that.\n"
    "\n"
    "The exit code is 0 if all snapshots can be used, 1 if one is damaged or the\n"
    "folder cannot be read, 2 if an option is wrong.\n";

enum { OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_JSON] = {"json", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

static const char *
snap_state(const struct hed_snap_entry *e)
{
    if (e->err == 0)
        return "ok";
    if (e->err == HED_ENOTFOUND && e->users)
        return "part";
    return e->err == HED_ENOTFOUND ? "incomplete" : "damaged";
}

static bool
is_bad(const struct hed_snap_entry *e)
{
    return e->err && !(e->err == HED_ENOTFOUND && e->users);
}

/* A name may have newlines, and must not forge a line. */
static const char *
line_name(const struct hed_snap_entry *e, char out[HED_SNAP_FILE_NAME])
{
    (void)hed_str_copy(out, HED_SNAP_FILE_NAME, e->name);
    for (char *c = out; *c; c++)
        if (*c == '\n')
            *c = '?';
    return out;
}

static void
add_snap_row(struct hed_buf *b, const struct hed_snap_entry *e, int width)
{
    char when[32], content[32], stored[32], name[HED_SNAP_FILE_NAME];

    hed_buf_addf(b, "%c%-*s ", e->head ? '*' : ' ', width, line_name(e, name));
    if (e->known)
        hed_buf_addf(b, "%6" PRIu64 "  %-19s ", e->about.epoch,
                     hed_cli_snap_time(e->about.created_ns, when, sizeof when));
    else
        hed_buf_addf(b, "%6s  %-19s ", "-", "-");
    if (e->whole)
        hed_buf_addf(b, "%10s %10s %5" PRIu32,
                     hed_cli_snap_bytes(e->sizes.content, content, sizeof content),
                     hed_cli_snap_bytes(e->sizes.stored, stored, sizeof stored), e->sizes.homes);
    else
        hed_buf_addf(b, "%10s %10s %5s", "-", "-", "-");
    hed_buf_addf(b, "  %s\n", snap_state(e));
}

static void
add_snap_table(struct hed_buf *b, const struct hed_snap_list *l)
{
    size_t width = strlen("SNAPSHOT");
    char name[HED_SNAP_FILE_NAME];

    for (size_t i = 0; i < l->count; i++)
        width = strlen(l->entries[i].name) > width ? strlen(l->entries[i].name) : width;
    hed_buf_addf(b, " %-*s %6s  %-19s %10s %10s %5s  %s\n", (int)width, "SNAPSHOT", "EPOCH",
                 "CREATED", "CONTENT", "STORED", "NEEDS", "STATE");
    for (size_t i = 0; i < l->count; i++)
        add_snap_row(b, &l->entries[i], (int)width);
    for (size_t i = 0; i < l->count; i++) {
        if (is_bad(&l->entries[i]))
            hed_buf_addf(b, "%s: %s\n", line_name(&l->entries[i], name), l->entries[i].why);
    }
    if (l->unfinished)
        hed_buf_addf(b, "%zu unfinished file%s: being written, or left by a process that died\n",
                     l->unfinished, l->unfinished == 1 ? "" : "s");
}

static void
add_json_uuid(struct hed_buf *b, const char *key, const uint8_t uuid[HED_SNAP_UUID])
{
    char text[HED_SNAP_UUID_TEXT];

    hed_str_next_field(b, key, hed_snap_uuid_is_zero(uuid) ? "" : hed_snap_uuid_text(uuid, text));
}

void
hed_cli_snap_json(struct hed_buf *b, const struct hed_snap_about *a, const struct hed_snap_sizes *s)
{
    add_json_uuid(b, "uuid", a->uuid);
    add_json_uuid(b, "parent", a->parent);
    add_json_uuid(b, "session", a->session);
    hed_buf_addf(b, ",\"epoch\":%" PRIu64 ",\"created_ns\":%" PRIu64 ",\"pid\":%" PRIu32, a->epoch,
                 a->created_ns, a->pid);
    hed_str_next_field(b, "program", a->program);
    hed_str_next_field(b, "address", a->address);
    hed_str_next_field(b, "device", a->device);
    hed_str_next_field(b, "backend", a->backend);
    hed_str_next_field(b, "arch", a->arch);
    hed_str_next_field(b, "label", a->label);
    hed_buf_addf(b, ",\"heap_base\":%" PRIu64 ",\"heap_size\":%" PRIu64 ",\"chunk_bytes\":%" PRIu32,
                 a->heap_base, a->heap_size, a->chunk_size);
    if (s)
        hed_buf_addf(b,
                     ",\"file_bytes\":%" PRIu64 ",\"content_bytes\":%" PRIu64
                     ",\"stored_bytes\":%" PRIu64 ",\"elsewhere_bytes\":%" PRIu64
                     ",\"zero_bytes\":%" PRIu64 ",\"extents\":%" PRIu32 ",\"homes\":%" PRIu32,
                     s->file, s->content, s->stored, s->elsewhere, s->zeros, s->extents, s->homes);
}

static void
add_snaps_json(struct hed_buf *b, const struct hed_snap_list *l)
{
    hed_buf_addf(b, "{");
    hed_str_field(b, "head", l->head, strlen(l->head));
    hed_buf_addf(b, ",\"unfinished\":%zu,\"snapshots\":[", l->unfinished);
    for (size_t i = 0; i < l->count; i++) {
        const struct hed_snap_entry *e = &l->entries[i];

        hed_buf_addf(b, "%s{", i ? "," : "");
        hed_str_field(b, "name", e->name, strlen(e->name));
        hed_str_next_field(b, "state", snap_state(e));
        hed_str_next_field(b, "why", e->why);
        if (e->known)
            hed_cli_snap_json(b, &e->about, e->whole ? &e->sizes : NULL);
        hed_buf_addf(b, "}");
    }
    hed_buf_addf(b, "]}\n");
}

static int
print_snaps(const char *path, bool json)
{
    struct hed_cli_snaps s;
    struct hed_snap_list l;
    struct hed_why why = {""};
    struct hed_buf b;
    int code = hed_cli_snap_folder("snap list", path, &s);

    if (code != HED_EXIT_OK)
        return code;
    if (hed_snap_store_list(s.store, &l, &why) != 0) {
        hed_cli_say("snap list: %s: %s", path, why.text);
        hed_cli_snap_close(&s);
        return HED_EXIT_FAILED;
    }
    hed_buf_init(&b, OUTPUT_MAX);
    if (json)
        add_snaps_json(&b, &l);
    else if (l.count || l.unfinished)
        add_snap_table(&b, &l);
    else
        hed_buf_addf(&b, "There is no snapshot in this folder.\n");
    if (json)
        fputs(hed_buf_cstr(&b), stdout);
    for (const char *line = hed_buf_cstr(&b); !json && *line;) {
        /* Names of files may have control characters. */
        char text[2048];
        const size_t n = strcspn(line, "\n");

        (void)snprintf(text, sizeof text, "%.*s", (int)n, line);
        hed_cli_put(stdout, text);
        putchar('\n');
        line += n + (line[n] == '\n');
    }
    hed_buf_fini(&b);
    for (size_t i = 0; i < l.count; i++)
        code = is_bad(&l.entries[i]) ? HED_EXIT_FAILED : code;
    hed_snap_list_fini(&l);
    hed_cli_snap_close(&s);
    return code;
}

int
hed_cli_snap_list(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    const char *path = NULL;
    bool json = false, plain = false;
    int option;

    o.command = "snap list";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == HED_CLI_OPERAND && path) {
            hed_cli_say("snap list: unexpected '%s'; give one folder", o.value);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND)
            path = o.value;
        json = json || option == OPT_JSON;
    }
    return print_snaps(path ? path : ".", json);
}
