/* Reading a client's wishes: "prio=high,share=3,policy=fair". */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "sched/share.h"

#define TEXT_MAX 512
#define WEIGHT_MAX 10000

static const char *const priorities[] = {
    [HED_PRIORITY_LOW] = "low",
    [HED_PRIORITY_NORMAL] = "normal",
    [HED_PRIORITY_HIGH] = "high",
};

static int
set_priority(struct hed_sched_wish *w, const char *value, struct hed_why *why)
{
    for (uint32_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
        if (strcmp(value, priorities[i]) != 0)
            continue;
        w->priority = i;
        w->given |= HED_SCHED_GIVEN_PRIORITY;
        return 0;
    }
    hed_why_set(why, "sched: prio=%.32s: is none of high, normal, low", value);
    return HED_EINVAL;
}

static int
set_policy(struct hed_sched_wish *w, const char *value, struct hed_why *why)
{
    const int i = hed_policy_find(value);

    if (i < 0) {
        hed_why_set(why,
                    "sched: there is no policy '%.32s' (there are: priority, fair, fifo, "
                    "deadline, slice, batch)",
                    value);
        return HED_EINVAL;
    }
    w->policy = (uint32_t)i;
    w->given |= HED_SCHED_GIVEN_POLICY;
    return 0;
}

static int
set_name(char *out, const char *key, const char *value, struct hed_why *why)
{
    const size_t n =
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (n == 0 || value[n] != '\0' || n >= HED_SCHED_NAME) {
        hed_why_set(why, "sched: %s: a name is 1 to %d letters, digits, '-' and '.'", key,
                    HED_SCHED_NAME - 1);
        return HED_EINVAL;
    }
    memcpy(out, value, n + 1);
    return 0;
}

/* Numbers: a unit of so many ns (0: it is a count), and what they are held to. */
static const struct number {
    const char *key;
    uint32_t given;
    size_t offset;
    bool wide; /* uint64_t, else uint32_t */
    uint64_t unit, low, high;
} numbers[] = {
#define AT(field) offsetof(struct hed_sched_wish, field)
    {"share", HED_SCHED_GIVEN_WEIGHT, AT(weight), false, 1, 1, WEIGHT_MAX},
    {"deadline_us", HED_SCHED_GIVEN_DEADLINE, AT(deadline), true, 1000, 1, 600000000},
    {"hold_us", HED_SCHED_GIVEN_HOLD, AT(params.hold), true, 1000, 0, 10000000},
    {"cap_us", HED_SCHED_GIVEN_CAP, AT(params.cap), true, 1000, 1, 10000000},
    {"slice_us", HED_SCHED_GIVEN_SLICE, AT(params.slice), true, 1000, 10, 10000000},
    {"batch", HED_SCHED_GIVEN_BATCH, AT(params.batch), false, 1, 1, 100000},
    {"batch_wait_us", HED_SCHED_GIVEN_BATCH_WAIT, AT(params.batch_wait), true, 1000, 1, 10000000},
#undef AT
};

static int
set_number(struct hed_sched_wish *w, const char *key, const char *value, struct hed_why *why)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *n = &numbers[i];
        char *at = (char *)w + n->offset;
        uint64_t v;

        if (strcmp(n->key, key) != 0)
            continue;
        if (hed_parse_u64(value, &v) || v < n->low || v > n->high) {
            hed_why_set(why, "sched: %s=%.32s: not a number from %llu to %llu", key, value,
                        (unsigned long long)n->low, (unsigned long long)n->high);
            return HED_EINVAL;
        }
        v *= n->unit;
        if (n->wide)
            memcpy(at, &v, sizeof v);
        else
            memcpy(at, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
        w->given |= n->given;
        return 0;
    }
    hed_why_set(why,
                "sched: there is no '%.32s' (there are: prio, share, policy, group, room, "
                "deadline_us, hold_us, cap_us, slice_us, batch, batch_wait_us)",
                key);
    return HED_EINVAL;
}

static int
set_pair(struct hed_sched_wish *w, char *pair, struct hed_why *why)
{
    char *value = strchr(pair, '=');
    int err;

    if (!value) {
        hed_why_set(why, "sched: expected KEY=VALUE, found '%.64s'", pair);
        return HED_EFORMAT;
    }
    *value++ = '\0';
    if (strcmp(pair, "prio") == 0)
        return set_priority(w, value, why);
    if (strcmp(pair, "policy") == 0)
        return set_policy(w, value, why);
    if (strcmp(pair, "group") == 0 || strcmp(pair, "room") == 0) {
        const bool group = *pair == 'g';

        err = set_name(group ? w->group : w->room, pair, value, why);
        w->given |= group ? HED_SCHED_GIVEN_GROUP : HED_SCHED_GIVEN_ROOM;
        return err;
    }
    return set_number(w, pair, value, why);
}

int
hed_sched_parse(const char *text, struct hed_sched_wish *out, struct hed_why *why)
{
    struct hed_sched_wish w = {
        .priority = HED_PRIORITY_NORMAL,
        .weight = 100,
        .policy = HED_POLICY_DEFAULT,
        .params = hed_sched_defaults,
    };
    char list[TEXT_MAX];
    char *rest = list;
    char *pair;

    if (!hed_str_copy(list, sizeof list, text)) {
        hed_why_set(why, "sched: longer than %d characters", TEXT_MAX - 1);
        return HED_ELIMIT;
    }
    /* "on" alone: with the defaults. */
    while (strcmp(text, "on") != 0 && (pair = strsep(&rest, ",")) != NULL) {
        const int err = set_pair(&w, hed_str_trim(pair), why);

        if (err)
            return err;
    }
    *out = w;
    return 0;
}

void
hed_sched_meet_name(const char *room, const unsigned char uuid[16], char out[HED_SCHED_MEET_MAX])
{
    size_t n =
        (size_t)snprintf(out, HED_SCHED_MEET_MAX, HED_SCHED_BEGIN "%s%s", room, *room ? "-" : "");

    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(out + n, HED_SCHED_MEET_MAX - n, "%02x", uuid[i]);
}
