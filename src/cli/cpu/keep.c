/* heddle cpu cache list, prune: what is in the cache, and what is not to be. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cpu/cache.h"
#include "kernel/cache.h"

#define NAME_COLUMNS 40
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* ---- list ------------------------------------------------------------------------------------ */

static const char *
bytes_text(uint64_t n, char out[32])
{
    if (n < 1024)
        (void)snprintf(out, 32, "%" PRIu64 " B", n);
    else if (n < 1024 * 1024)
        (void)snprintf(out, 32, "%.1f KiB", (double)n / 1024);
    else
        (void)snprintf(out, 32, "%.1f MiB", (double)n / (1024 * 1024));
    return out;
}

static const char *
age_text(time_t then, char out[32])
{
    const time_t now = time(NULL);
    const long long s = now > then ? (long long)(now - then) : 0;

    if (s < 120)
        (void)snprintf(out, 32, "%lld s", s);
    else if (s < 7200)
        (void)snprintf(out, 32, "%lld min", s / 60);
    else if (s < 2 * 86400)
        (void)snprintf(out, 32, "%lld h", s / 3600);
    else
        (void)snprintf(out, 32, "%lld days", s / 86400);
    return out;
}

static void
print_cache_row(const struct hed_cache_file *f, const struct hed_cache_entry *e,
                const char *useless)
{
    char room[HED_DEMANGLED_MAX], bytes[32], age[32], took[32] = "-";
    const char *name = e ? hed_demangle(e->about.name, room, sizeof room) : f->name;

    if (e)
        (void)snprintf(took, sizeof took, "%.1f s", (double)e->about.compile_us / 1e6);
    hed_cli_tell("%-*.*s %10s %9s %9s  %s", NAME_COLUMNS, NAME_COLUMNS, name,
                 bytes_text(f->bytes, bytes), took, age_text(f->time.tv_sec, age),
                 useless ? useless : "ok");
}

static void
print_cache_json(const struct hed_cache_file *f, const struct hed_cache_entry *e,
                 const char *useless)
{
    char room[HED_DEMANGLED_MAX];
    struct hed_buf b;

    hed_buf_init(&b, LINE_MAX_BYTES);
    hed_buf_addf(&b, "{");
    hed_str_field(&b, "file", f->name, strlen(f->name));
    hed_buf_addf(&b, ",\"bytes\":%" PRIu64 ",\"used\":%lld,", f->bytes, (long long)f->time.tv_sec);
    useless = useless ? useless : "ok";
    hed_str_field(&b, "state", useless, strlen(useless));
    if (e) {
        const struct hed_cache_about *a = &e->about;
        const char *name = hed_demangle(a->name, room, sizeof room);

        hed_buf_addf(&b, ",");
        hed_str_field(&b, "kernel", a->name, strlen(a->name));
        hed_buf_addf(&b, ",");
        hed_str_field(&b, "name", name, strlen(name));
        hed_buf_addf(&b, ",\"compile_us\":%u,\"abi\":%u,", a->compile_us, a->abi);
        hed_str_field(&b, "version", a->version, strlen(a->version));
        hed_buf_addf(&b, ",");
        hed_str_field(&b, "features", a->features, strlen(a->features));
    }
    hed_buf_addf(&b, "}\n");
    if (!b.err)
        (void)fwrite(b.data, 1, b.size, stdout);
    hed_buf_fini(&b);
}

/* What is compiled for a program that has ended: kernel/forkserver/after.c wrote it. */
static void
print_turn(const struct hed_cli_cache *c)
{
    char text[HED_CACHE_TURN_TEXT], program[32] = "", kernel[513] = "", room[HED_DEMANGLED_MAX];
    int pid, of;
    unsigned left;

    if (hed_cache_see_turn(c->cache, text) &&
        sscanf(text, "%d %d %u %31[^\n]\n%512[^\n]", &pid, &of, &left, program, kernel) == 5)
        hed_cli_tell("process %d compiles for %s (process %d), which has ended: %s; %u left", pid,
                     program, of, hed_demangle(kernel, room, sizeof room), left);
}

/* The listed files. False if there is no memory; a folder that is not there is empty. */
static bool
list_files(const struct hed_cli_cache *c, struct hed_cache_file **files, size_t *count)
{
    const int err = hed_cache_list(c->cache, files, count);

    if (err && err != HED_ENOTFOUND) {
        hed_cli_say("cpu cache: %s: %s", hed_cache_path(c->cache), hed_err_text(err));
        return false;
    }
    if (err) {
        *files = NULL;
        *count = 0;
    }
    return true;
}

int
hed_cli_cache_list(const struct hed_cli_cache *c)
{
    struct hed_cache_file *files;
    struct hed_buf bytes;
    uint64_t total = 0;
    char text[32], limit[32];
    size_t count;

    if (!list_files(c, &files, &count))
        return HED_EXIT_FAILED;
    hed_buf_init(&bytes, HED_CACHE_HEAD_MAX);
    if (!c->json && count)
        hed_cli_tell("%-*s %10s %9s %9s  %s", NAME_COLUMNS, "KERNEL", "SIZE", "COMPILED", "USED",
                     "STATE");
    for (size_t i = 0; i < count; i++) {
        struct hed_cache_entry e;
        const int err = hed_cache_look(c->cache, files[i].name, false, &bytes, &e);
        const char *useless = hed_cli_cache_useless(c, err, &e);

        (c->json ? print_cache_json : print_cache_row)(&files[i], err ? NULL : &e, useless);
        total += files[i].bytes;
    }
    if (!c->json) {
        hed_cli_tell("%zu kernel%s, %s of at most %s in %s", count, count == 1 ? "" : "s",
                     bytes_text(total, text), bytes_text(hed_cache_limit(c->cache), limit),
                     hed_cache_path(c->cache));
        print_turn(c);
    }
    hed_buf_fini(&bytes);
    free(files);
    return HED_EXIT_OK;
}

/* ---- prune ----------------------------------------------------------------------------------- */

static bool
is_to_go(const struct hed_cli_cache *c, const struct hed_cache_file *f, struct hed_buf *bytes)
{
    const time_t now = time(NULL);
    struct hed_cache_entry e;
    int err;

    if (c->all || (c->older_s && now - f->time.tv_sec > (time_t)c->older_s))
        return true;
    if (!c->stale)
        return false;
    /* All of it, to see whether it is damaged. */
    err = hed_cache_look(c->cache, f->name, true, bytes, &e);
    return hed_cli_cache_useless(c, err, &e) != NULL;
}

int
hed_cli_cache_prune(const struct hed_cli_cache *c)
{
    struct hed_cache_file *files;
    struct hed_buf bytes;
    uint64_t kept = 0, freed = 0;
    size_t count, gone = 0, failed = 0;
    char text[32], left[32];

    if (!c->all && !c->stale && !c->older_s && !c->has_size) {
        hed_cli_say("cpu cache prune: give --stale, --older, --size or --all");
        return HED_EXIT_USAGE;
    }
    if (!list_files(c, &files, &count))
        return HED_EXIT_FAILED;
    hed_buf_init(&bytes, HED_CACHE_ENTRY_MAX);
    /* The most recently used come first, and are kept. */
    for (size_t i = 0; i < count; i++) {
        const bool fits = !c->has_size || kept + files[i].bytes <= c->size;

        if (fits && !is_to_go(c, &files[i], &bytes)) {
            kept += files[i].bytes;
        } else if (hed_cache_remove(c->cache, files[i].name)) {
            freed += files[i].bytes;
            gone++;
        } else {
            failed++;
        }
    }
    hed_cli_tell("removed %zu of %zu kernels, %s; %s left", gone, count, bytes_text(freed, text),
                 bytes_text(kept, left));
    if (failed)
        hed_cli_say("cpu cache prune: %zu files in %s cannot be removed", failed,
                    hed_cache_path(c->cache));
    hed_buf_fini(&bytes);
    free(files);
    return failed ? HED_EXIT_FAILED : HED_EXIT_OK;
}
