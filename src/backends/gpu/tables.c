/* The in-place counting of backends/gpu/tables.h. */
#include "backends/gpu/tables.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/number.h"
#include "core/foreign.h"

#define TABLES_MAX 128 /* NVIDIA's driver has about forty */
#define TABLE_WORDS_MAX 4096

static struct hed_lock lock = HED_LOCK_INIT(HED_RANK_STATS);
static const void *done[TABLES_MAX]; /* guarded by lock */
static size_t done_count;

/* Context-local storage: the one table whose first word is a function and which ends at a NULL. */
static const unsigned char storage_id[16] = {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
                                             0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93};

/* The integrity check: NVIDIA's runtime hashes the function it finds there, the driver its own. */
static const unsigned char integrity_id[16] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
                                               0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};

/* First and one-past-last word that holds a function. False for what does not look like a table. */
static bool
function_words(void *const *table, const CUuuid *id, size_t *first, size_t *end)
{
    if (memcmp(id->bytes, storage_id, sizeof storage_id) == 0) {
        *first = 0;
        for (*end = 0; *end < 16 && table[*end]; (*end)++)
            continue;
        return true;
    }

    const uintptr_t bytes = (uintptr_t)table[0];

    *first = 1;
    *end = bytes / sizeof *table;
    return bytes % sizeof *table == 0 && *end >= 2 && *end <= TABLE_WORDS_MAX;
}

/* The protection of the mapping that holds p; -1 if it cannot be told. */
static int
protection(const void *p)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    int prot = -1;

    while (f && prot < 0 && fgets(line, sizeof line, f)) {
        unsigned long low;
        unsigned long high;
        char perms[8];

        if (sscanf(line, "%lx-%lx %7s", &low, &high, perms) == 3 && (uintptr_t)p >= low &&
            (uintptr_t)p < high)
            prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                   (perms[2] == 'x' ? PROT_EXEC : 0);
    }
    if (f)
        (void)fclose(f);
    return prot;
}

static void
patch_locked(void **table, size_t first, size_t end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t low = (uintptr_t)(table + first) & ~(page - 1);
    const uintptr_t high = hed_align_up((uintptr_t)(table + end), page);
    const int prot = protection(table);

    if (prot < 0 ||
        ((prot & PROT_WRITE) == 0 && mprotect((void *)low, high - low, prot | PROT_WRITE) != 0)) {
        hed_warn(GPU, "an export table cannot be written; its calls are not counted");
        return;
    }
    for (size_t i = first; i < end; i++)
        if (table[i])
            table[i] = hed_foreign_wrap(table[i], "export table");
    if ((prot & PROT_WRITE) == 0)
        (void)mprotect((void *)low, high - low, prot);
}

void
hed_gpu_tables_forked(void)
{
    hed_lock_init(&lock, HED_RANK_STATS);
}

void
hed_gpu_count_table(const void *table, const CUuuid *id)
{
    size_t first;
    size_t end;

    if (memcmp(id->bytes, integrity_id, sizeof integrity_id) == 0 ||
        !function_words(table, id, &first, &end))
        return;
    hed_lock(&lock);

    bool seen = done_count == TABLES_MAX;

    for (size_t i = 0; i < done_count && !seen; i++)
        seen = done[i] == table;
    if (!seen) {
        done[done_count++] = table;
        patch_locked((void **)(uintptr_t)table, first, end);
    }
    hed_unlock(&lock);
}
