/* heddle snap info: what is in a snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"

#define OUTPUT_MAX (256u << 20)
#define NOTES_MAX (1u << 20) /* bytes of notes that are shown */

static const char usage[] =
    "usage: heddle snap info FILE [OPTION...]\n"
    "\n"
    "Shows what is in a snapshot: which program it is of, its memory and process\n"
    "image, and on which older snapshots it depends.\n"
    "\n"
    "  --extents    list every piece of memory and every file in it\n"
    "  --json       print JSON, with all pieces\n"
    "  -h, --help   show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if the snapshot cannot be read or one that it\n"
    "needs is missing, 2 if an option is wrong.\n";

enum { OPT_EXTENTS, OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_EXTENTS] = {"extents", false},
    [OPT_JSON] = {"json", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

struct info_request {
    const char *path;
    bool extents;
    bool json;
};

/* ---- for people ------------------------------------------------------------------------------ */

static void
print_info_line(const char *key, const char *value)
{
    if (!value[0])
        return;
    printf("%-12s ", key);
    hed_cli_put(stdout, value);
    putchar('\n');
}

static void
print_uuid_line(const char *key, const uint8_t uuid[HED_SNAP_UUID])
{
    char text[HED_SNAP_UUID_TEXT];

    if (!hed_snap_uuid_is_zero(uuid))
        print_info_line(key, hed_snap_uuid_text(uuid, text));
}

/* How much of each kind there is. */
static void
print_kinds(const struct hed_snap_reader *r)
{
    uint64_t bytes[HED_SNAP_KIND_LAST + 1] = {0};
    uint32_t count[HED_SNAP_KIND_LAST + 1] = {0};
    char text[32];

    for (uint32_t id = 0; id < hed_snap_extent_count(r); id++) {
        const struct hed_snap_extent *e = hed_snap_extent_at(r, id);

        bytes[e->kind] += e->size;
        count[e->kind]++;
    }
    for (int kind = 1; kind <= HED_SNAP_KIND_LAST; kind++) {
        if (count[kind])
            printf("%-12s %s: %s in %" PRIu32 " piece%s\n", "holds", hed_snap_kind_name(kind),
                   hed_cli_snap_bytes(bytes[kind], text, sizeof text), count[kind],
                   count[kind] == 1 ? "" : "s");
    }
}

static void
print_about(const struct hed_snap_reader *r)
{
    const struct hed_snap_about *a = hed_snap_reader_about(r);
    struct hed_snap_sizes s;
    char text[64], other[64];

    hed_snap_reader_sizes(r, &s);
    print_uuid_line("uuid", a->uuid);
    print_uuid_line("parent", a->parent);
    print_uuid_line("session", a->session);
    printf("%-12s %" PRIu64 "\n", "epoch", a->epoch);
    print_info_line("created", hed_cli_snap_time(a->created_ns, text, sizeof text));
    print_info_line("label", a->label);
    print_info_line("program", a->program);
    printf("%-12s %" PRIu32 "\n", "pid", a->pid);
    print_info_line("server", a->address);
    print_info_line("device", a->device);
    print_info_line("backend", a->backend);
    print_info_line("machine", a->arch);
    if (a->heap_size)
        printf("%-12s 0x%" PRIx64 ", %s\n", "addresses", a->heap_base,
               hed_cli_snap_bytes(a->heap_size, text, sizeof text));
    printf("%-12s %s, of which %s are zeros\n", "content",
           hed_cli_snap_bytes(s.content, text, sizeof text),
           hed_cli_snap_bytes(s.zeros, other, sizeof other));
    printf("%-12s %s in this file, %s in older ones\n", "stored",
           hed_cli_snap_bytes(s.stored, text, sizeof text),
           hed_cli_snap_bytes(s.elsewhere, other, sizeof other));
    print_kinds(r);
    for (uint32_t i = 0; i < s.homes; i++)
        print_uuid_line("needs", hed_snap_reader_home(r, i));
}

/* Notes about the session are text. */
static void
print_notes(const struct hed_snap_reader *r, uint32_t id)
{
    const struct hed_snap_extent *e = hed_snap_extent_at(r, id);
    const size_t length = hed_snap_chunk_length(r, id, 0);
    char *text = e->size > 0 && length <= NOTES_MAX ? calloc(1, length + 1) : NULL;

    if (text && hed_snap_chunk_get(r, id, 0, text, length, NULL) == 0) {
        putchar('\n');
        for (char *line = text, *next; line && *line; line = next) {
            next = strchr(line, '\n');
            if (next)
                *next++ = '\0';
            hed_cli_put(stdout, line);
            putchar('\n');
        }
    }
    free(text);
}

static void
print_extents(const struct hed_snap_reader *r)
{
    char size[32];

    printf("\n%-9s %3s %18s %12s  %s\n", "KIND", "GPU", "KEY", "SIZE", "NAME");
    for (uint32_t id = 0; id < hed_snap_extent_count(r); id++) {
        const struct hed_snap_extent *e = hed_snap_extent_at(r, id);

        printf("%-9s %3" PRIu32 " %#18" PRIx64 " %12s  ", hed_snap_kind_name(e->kind), e->device,
               e->key, hed_cli_snap_bytes(e->size, size, sizeof size));
        hed_cli_put(stdout, e->name);
        putchar('\n');
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
print_info_json(const char *name, const struct hed_snap_reader *r)
{
    struct hed_snap_sizes s;
    char uuid[HED_SNAP_UUID_TEXT];
    struct hed_buf b;

    hed_snap_reader_sizes(r, &s);
    hed_buf_init(&b, OUTPUT_MAX);
    hed_buf_addf(&b, "{");
    hed_str_field(&b, "name", name, strlen(name));
    hed_cli_snap_json(&b, hed_snap_reader_about(r), &s);
    hed_buf_addf(&b, ",\"needs\":[");
    for (uint32_t i = 0; i < s.homes; i++)
        hed_buf_addf(&b, "%s\"%s\"", i ? "," : "",
                     hed_snap_uuid_text(hed_snap_reader_home(r, i), uuid));
    hed_buf_addf(&b, "],\"pieces\":[");
    for (uint32_t id = 0; id < s.extents; id++) {
        const struct hed_snap_extent *e = hed_snap_extent_at(r, id);

        hed_buf_addf(&b,
                     "%s{\"kind\":\"%s\",\"device\":%" PRIu32 ",\"key\":%" PRIu64
                     ",\"context\":%" PRIu64 ",\"bytes\":%" PRIu64 ",",
                     id ? "," : "", hed_snap_kind_name(e->kind), e->device, e->key, e->context,
                     e->size);
        hed_str_field(&b, "name", e->name, strlen(e->name));
        hed_buf_addf(&b, "}");
    }
    hed_buf_addf(&b, "]}\n");
    if (b.err == 0)
        fputs(hed_buf_cstr(&b), stdout);
    else
        hed_cli_say("snap info: the list is too long");
    hed_buf_fini(&b);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
print_info(const struct info_request *q)
{
    struct hed_snap_reader *r = NULL;
    struct hed_why why = {""};
    struct hed_cli_snaps s;
    int fd = -1;
    int code = hed_cli_snap_file("snap info", q->path, &s);

    if (code != HED_EXIT_OK)
        return code;
    if (hed_snap_store_get(s.store, s.name, 0, &fd, &r, &why) != 0) {
        hed_cli_say("snap info: %s: %s", q->path, why.text);
        hed_cli_snap_close(&s);
        return HED_EXIT_FAILED;
    }
    if (q->json)
        print_info_json(s.name, r);
    else
        print_about(r);
    for (uint32_t id = 0; !q->json && id < hed_snap_extent_count(r); id++) {
        if (hed_snap_extent_at(r, id)->kind == HED_SNAP_OBJECTS)
            print_notes(r, id);
    }
    if (!q->json && q->extents)
        print_extents(r);
    hed_snap_reader_free(r);
    (void)hed_snap_files_real.close(NULL, fd);
    hed_cli_snap_close(&s);
    return code;
}

int
hed_cli_snap_info(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct info_request q = {0};
    bool plain = false;
    int option;

    o.command = "snap info";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == HED_CLI_OPERAND && q.path) {
            hed_cli_say("snap info: unexpected '%s'; give one file", o.value);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND)
            q.path = o.value;
        q.json = q.json || option == OPT_JSON;
        q.extents = q.extents || option == OPT_EXTENTS;
    }
    if (!q.path) {
        hed_cli_say("snap info: no file given; see heddle snap info --help");
        return HED_EXIT_USAGE;
    }
    return print_info(&q);
}
