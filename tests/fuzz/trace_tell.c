/* Fuzz target: what `heddle trace` makes of a file: the tables of a summary, a page, folded stacks.
 * The same corpus as that of trace_read. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/trace/count.h"
#include "cli/trace/folded.h"
#include "cli/trace/page.h"
#include "fuzz/trace_repair.h"
#include "see/see.h"

/* No text of the file ends a script, or controls anything: the parts between the page's own two
 * scripts have no "<" and no control characters. */
static void
check_page(const char *html)
{
    const char *facts = strstr(html, "id=\"facts\">");
    const char *end = facts ? strstr(facts, "</script>") : NULL;

    must(facts && end);
    for (const char *p = strchr(facts, '>') + 1; p < end; p++)
        must(*p != '<' && ((unsigned char)*p >= 0x20 || *p == '\n') && *p != 0x7f);
}

static void
make_page(const struct hed_trace *t)
{
    struct hed_page *p = hed_page_create(t);
    struct hed_trace_index *index = NULL;
    struct hed_trace_record r;
    char *html = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&html, &size);

    must(p && f && hed_trace_sort(t, &index, NULL) == 0);
    for (size_t i = 0; hed_trace_at(index, i, &r); i++)
        must(hed_page_put(p, &r, NULL));
    must(hed_page_write(p, "trace", f, NULL));
    must(fclose(f) == 0);
    check_page(html);
    free(html);
    hed_trace_index_free(index);
    hed_page_free(p);
}

static void
count_everything(const struct hed_trace *t)
{
    struct hed_count count = {.full = false};
    struct hed_count_totals totals;
    char *json = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&json, &size);

    must(f);
    hed_count_init(&count);
    hed_count_add(&count, t, &totals);
    hed_count_describe(&count, "trace", t, &totals);
    hed_count_finish(&count, HED_SORT_TOTAL);
    hed_count_json(&count, f);
    must(fclose(f) == 0);
    free(json);
    hed_gpu_devices_fini(&totals.gpus);
    hed_count_fini(&count);
}

static void
fold(const struct hed_trace *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    must(f && hed_folded_write(t, f));
    must(fclose(f) == 0);
    for (size_t i = 0; i < size; i++)
        must((unsigned char)text[i] >= 0x20 || text[i] == '\n');
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    struct hed_trace *t = NULL;

    must(copy);
    if (size)
        memcpy(copy, data, size);
    /* Without right checksums, nearly every mutant would be refused. */
    fuzz_repair_trace(copy, size);
    if (hed_trace_open_memory(copy, size, &t, NULL) == 0) {
        count_everything(t);
        make_page(t);
        fold(t);
        hed_trace_close(t);
    }
    free(copy);
    return 0;
}
