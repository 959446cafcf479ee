/* Fuzz target: settings (`--sched`, `heddle sched set`) and names of clients (heddle_set_client).
 * Accepted values are in range; all others are refused with a reason and change nothing. A setting
 * with which a program cannot be started cannot be set later either.
 */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "share/sched/share.h"

#define OF_CLIENT                                                                   \
    (HED_SCHED_GIVEN_PRIORITY | HED_SCHED_GIVEN_WEIGHT | HED_SCHED_GIVEN_DEADLINE | \
     HED_SCHED_GIVEN_GROUP)
#define KEPT                                                                \
    (HED_SCHED_GIVEN_GROUP | HED_SCHED_GIVEN_SCOPE | HED_SCHED_GIVEN_MODE | \
     HED_SCHED_GIVEN_STREAM | HED_SCHED_GIVEN_QUEUE)

static bool
is_name(const char name[HED_SCHED_NAME])
{
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    return n > 0 && n < HED_SCHED_NAME && name[n] == '\0';
}

static bool
is_sound(const struct hed_sched_settings *w)
{
    const struct hed_sched_params *p = &w->params;
    const uint64_t most = 10 * HED_NS_PER_S;

    return w->priority <= HED_PRIORITY_HIGH && w->weight >= 1 && w->weight <= 10000 &&
           w->deadline <= 600 * HED_NS_PER_S && w->policy < HED_POLICY_COUNT && p->hold <= most &&
           p->cap >= 1000 && p->cap <= most && p->slice >= 10000 && p->slice <= most &&
           p->batch >= 1 && p->batch <= 100000 && p->batch_wait >= 1000 && p->batch_wait <= most &&
           w->queue >= 1 && w->queue <= 65536 && (!*w->group || is_name(w->group)) &&
           (!*w->scope || is_name(w->scope));
}

/* A refusal has a reason, happens even if the caller wants none, and changes no setting. */
static bool
try_settings(int (*parse)(const char *, struct hed_sched_settings *, struct hed_why *),
             const char *text, struct hed_sched_settings *out)
{
    struct hed_sched_settings before;
    struct hed_why why = {""};

    memset(out, 0x5a, sizeof *out);
    memcpy(&before, out, sizeof before);

    const int err = parse(text, out, &why);

    must(err <= 0);
    must(err == 0 || (strncmp(why.text, "sched: ", 7) == 0 && why.text[7]));
    must(err == 0 || memcmp(out, &before, sizeof before) == 0);
    must(err == parse(text, out, NULL));
    return err == 0;
}

static void
try_client(const char *text)
{
    struct hed_sched_settings process;
    struct hed_sched_settings settings;
    struct hed_why why = {""};
    char name[HED_SCHED_NAME] = "untouched";

    must(hed_sched_parse("share=7,group=all,cap_us=9", &process, NULL) == 0);
    memcpy(&settings, &process, sizeof settings);

    const int err = hed_sched_parse_client(text, name, &settings, &why);

    must(err <= 0);
    if (err) {
        must(strncmp(why.text, "sched: ", 7) == 0 && strcmp(name, "untouched") == 0);
        must(memcmp(&settings, &process, sizeof settings) == 0);
        return;
    }
    must(is_name(name) && is_sound(&settings));
    must((settings.given & ~(process.given | OF_CLIENT)) == 0);
    must(settings.params.cap == process.params.cap && settings.policy == process.policy);
    must(strchr(text, ':') ||
         (settings.weight == process.weight && settings.priority == process.priority &&
          strcmp(settings.group, process.group) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_sched_settings start;
    struct hed_sched_settings change;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';

    const bool starts = try_settings(hed_sched_parse, text, &start);
    const bool changes = try_settings(hed_sched_parse_change, text, &change);

    must(!starts || is_sound(&start));
    must(!changes || (is_sound(&change) && (change.given & KEPT) == 0 && starts));
    must(!changes || start.given == change.given);
    try_client(text);
    free(text);
    return 0;
}
