/* The memory that workers really use: if all of them together use more than --total-memory, the one
 * that uses most is ended, before the system has to choose a process by itself. Spares go first.
 *
 * Leases do not help here. Clients lease more device memory than they use, devices of the CPU GPU
 * may be larger than the machine, and private memory is not leased at all. So the listener asks the
 * kernel. A worker that is quicker than its looks meets the limit of its control group, or the
 * system's.
 *
 * Memory that workers share (offers.h) counts once, for the worker that has made it. How much of a
 * worker's memory is another's, the kernel tells only who may look into the process, which we may
 * not. But what a worker has made itself is in its lease, so what it has beyond that is another's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"

#define LOOK_NS HED_NS_PER_S
#define SPARES_REST_MS 60000
/* Bytes of files that a worker has without a lease: those of its channels, and small ones. */
#define UNLEASED (UINT64_C(32) << 20)
#define LOOK_SOON_NS (100 * HED_NS_PER_MS) /* while more than half is used */

/* A line such as "RssAnon:     1234 kB". */
static uint64_t
bytes_in_line(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    uint64_t kib = 0;

    return at && sscanf(at + strlen(key), "%" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

/* Its own memory, and `files`: that in files in memory. Not RssFile: those are libraries, which all
 * workers share. */
static uint64_t
memory_of_process(pid_t pid, uint64_t *files)
{
    char path[64], text[4096];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    (void)hed_read_small(path, text, sizeof text);
    *files = bytes_in_line(text, "\nRssShmem:");
    return bytes_in_line(text, "\nRssAnon:");
}

/* With its children down to the given depth. Only the first thread of a worker has any. */
static uint64_t
memory_of_children(pid_t pid, int depth)
{
    uint64_t sum = 0, files;
    char path[64], text[1024];
    int child, used;

    if (depth == 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    for (const char *at = hed_read_small(path, text, sizeof text);
         sscanf(at, "%d%n", &child, &used) == 1; at += used)
        sum += memory_of_process((pid_t)child, &files) + files +
               memory_of_children((pid_t)child, depth - 1);
    return sum;
}

/* Of the memory in files that a worker has, what counts for it. */
static uint64_t
own_part_of_files(const struct hed_server *s, const struct hed_child *c, uint64_t files)
{
    uint64_t own, others, most = UNLEASED;

    hed_offers_count(s, c, &own, &others);
    for (int i = 0; i < HED_LEASE_SOCKET_PLACES && others; i++)
        most += s->ledger.leased[c - s->children][i];
    files -= hed_min(others, files - hed_min(files, most));
    /* It may be that only others have touched what it has made. */
    return hed_max(files, own);
}

uint64_t
hed_pressure_of(const struct hed_server *s, const struct hed_child *c)
{
    uint64_t files;
    const uint64_t own = memory_of_process(c->pid, &files);

    /* The children are its fork server, and the compilers. */
    return own + own_part_of_files(s, c, files) + memory_of_children(c->pid, 2);
}

static void
end_largest(struct hed_server *s, struct hed_child *c, uint64_t its, uint64_t all)
{
    char own[HED_SIZE_TEXT], sum[HED_SIZE_TEXT], limit[HED_SIZE_TEXT];

    hed_warn(SERVER,
             "workers use %s of memory together, more than %s (--total-memory): worker %d, which "
             "uses most (%s), is ended",
             hed_size_text(all, sum), hed_size_text(s->options->total_memory, limit), (int)c->pid,
             hed_size_text(its, own));
    (void)hed_child_evict(s, (uint64_t)c->pid);
}

uint64_t
hed_pressure_look(struct hed_server *s, uint64_t now_ns)
{
    const uint64_t limit = s->options->total_memory;
    struct hed_child *largest = NULL;
    uint64_t all = 0, most = 0;

    if (!limit || !(s->child_count + s->spare_count))
        return UINT64_MAX;
    if (now_ns < s->pressure_ns)
        return s->pressure_ns;
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];
        const uint64_t its = c->pid > 0 && !c->evicted ? hed_pressure_of(s, c) : 0;

        all += its;
        if (its > most && !c->spare) {
            most = its;
            largest = c;
        }
    }
    if (all > limit && s->spare_count && hed_spares_end(s, SPARES_REST_MS))
        hed_warn(SERVER, "workers use more memory together than --total-memory: the spares end");
    else if (all > limit && largest)
        end_largest(s, largest, most, all);
    s->pressure_ns = now_ns + (all > limit / 2 ? LOOK_SOON_NS : LOOK_NS);
    return s->pressure_ns;
}
