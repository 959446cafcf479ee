/* Comparing rows. See rows_check.h. */
#include "rows_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const rows_set_names[ROWS_SETS] = {"i16",    "i32", "i64",  "f16", "bf16", "f16x2",
                                               "bf16x2", "f32", "trig", "f64", "f32x2"};

static bool
find_golden(FILE *f, const char *text, uint64_t *hash)
{
    char line[512];

    rewind(f);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strlen(line) > 17 && strcmp(line + 17, text) == 0) {
            *hash = strtoull(line, NULL, 16);
            return true;
        }
    }
    return false;
}

void
rows_complain(const struct row *r, const uint64_t *in, unsigned bad, unsigned i, uint64_t got,
              uint64_t want)
{
    printf("%s: %u differ; (%" PRIx64 ", %" PRIx64 ", %" PRIx64 "): %" PRIx64 " instead of %" PRIx64
           "\n",
           r->text, bad, in[3 * i], in[3 * i + 1], in[3 * i + 2], got, want);
}

static bool
check_reference(const struct row *r, const uint64_t *in, const uint64_t *got)
{
    unsigned bad = 0;
    unsigned first = 0;
    uint64_t wanted = 0;

    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        const uint64_t want = rows_reference(r, &in[3 * i]);

        if (!rows_near(r, got[i], want)) {
            first = bad ? first : i;
            wanted = bad ? wanted : want;
            bad++;
        }
    }
    if (bad)
        rows_complain(r, in, bad, first, got[first], wanted);
    return bad == 0;
}

static bool
check_zero(const struct row *r, const uint64_t *in, const uint64_t *got)
{
    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        if (got[i]) {
            rows_complain(r, in, 1, i, got[i], 0);
            return false;
        }
    }
    return true;
}

static bool
check_golden(FILE *golden, const struct row *r, const uint64_t *got)
{
    uint64_t want;

    if (!find_golden(golden, r->text, &want)) {
        printf("%s: no golden hash\n", r->text);
        return false;
    }
    if (rows_hash(got) == want)
        return true;
    printf("%s: not what an H200 gives\n", r->text);
    return false;
}

bool
rows_check(FILE *golden, const struct row *r, const uint64_t *in, const uint64_t *got)
{
    if (r->kind)
        return check_reference(r, in, got);
    return r->on_new ? check_zero(r, in, got) : check_golden(golden, r, got);
}
