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

/* "priority, fair, ..." */
static void
list_policies(char *out, size_t size)
{
    size_t n = 0;

    *out = '\0';
    for (int i = 0; i < HED_POLICY_COUNT && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", hed_policies[i].name);
}

static int
set_policy(struct hed_sched_wish *w, const char *value, struct hed_why *why)
{
    const int i = hed_policy_find(value);
    char names[256];

    if (i < 0) {
        list_policies(names, sizeof names);
        hed_why_set(why, "sched: policy=%.32s: there is no such policy (there are: %s)", value,
                    names);
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

/* One of two words. */
static int
set_choice(struct hed_sched_wish *w, const char *key, const char *value, struct hed_why *why)
{
    const bool mode = strcmp(key, "mode") == 0;
    const char *const no = mode ? "gate" : "client";
    const char *const yes = mode ? "record" : "own";
    const bool is = strcmp(value, yes) == 0;

    if (!is && strcmp(value, no) != 0) {
        hed_why_set(why, "sched: %s=%.32s: is neither %s nor %s", key, value, no, yes);
        return HED_EINVAL;
    }
    *(mode ? &w->record : &w->own_stream) = is;
    w->given |= mode ? HED_SCHED_GIVEN_MODE : HED_SCHED_GIVEN_STREAM;
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
    {"queue", HED_SCHED_GIVEN_QUEUE, AT(queue), false, 1, 1, 65536},
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
                "deadline_us, hold_us, cap_us, slice_us, batch, batch_wait_us, mode, stream, "
                "queue)",
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
    if (strcmp(pair, "mode") == 0 || strcmp(pair, "stream") == 0)
        return set_choice(w, pair, value, why);
    if (strcmp(pair, "group") == 0 || strcmp(pair, "room") == 0) {
        const bool group = *pair == 'g';

        err = set_name(group ? w->group : w->room, pair, value, why);
        w->given |= group ? HED_SCHED_GIVEN_GROUP : HED_SCHED_GIVEN_ROOM;
        return err;
    }
    return set_number(w, pair, value, why);
}

/* All of a list, into what is there already. */
static int
set_all(struct hed_sched_wish *w, const char *text, struct hed_why *why)
{
    char list[TEXT_MAX];
    char *rest = list;
    char *pair;

    if (!hed_str_copy(list, sizeof list, text)) {
        hed_why_set(why, "sched: longer than %d characters", TEXT_MAX - 1);
        return HED_ELIMIT;
    }
    while ((pair = strsep(&rest, ",")) != NULL) {
        const int err = set_pair(w, hed_str_trim(pair), why);

        if (err)
            return err;
    }
    return 0;
}

static struct hed_sched_wish
no_wishes(void)
{
    return (struct hed_sched_wish){
        .priority = HED_PRIORITY_NORMAL,
        .weight = 100,
        .policy = HED_POLICY_DEFAULT,
        .params = hed_sched_defaults,
        .queue = HED_SCHED_QUEUE,
    };
}

int
hed_sched_parse(const char *text, struct hed_sched_wish *out, struct hed_why *why)
{
    struct hed_sched_wish w = no_wishes();
    /* "on" alone: with the defaults. */
    const int err = strcmp(text, "on") == 0 ? 0 : set_all(&w, text, why);

    if (err)
        return err;
    if (!w.record && (w.given & (HED_SCHED_GIVEN_STREAM | HED_SCHED_GIVEN_QUEUE))) {
        hed_why_set(why, "sched: stream and queue are for mode=record");
        return HED_EINVAL;
    }
    *out = w;
    return 0;
}

int
hed_sched_parse_change(const char *text, struct hed_sched_wish *out, struct hed_why *why)
{
    static const struct {
        uint32_t given;
        const char *what;
    } kept[] = {
        {HED_SCHED_GIVEN_GROUP, "group"}, {HED_SCHED_GIVEN_ROOM, "room"},
        {HED_SCHED_GIVEN_MODE, "mode"},   {HED_SCHED_GIVEN_STREAM, "stream"},
        {HED_SCHED_GIVEN_QUEUE, "queue"},
    };
    struct hed_sched_wish w = no_wishes();
    const int err = set_all(&w, text, why);

    if (err)
        return err;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!(w.given & kept[i].given))
            continue;
        hed_why_set(why, "sched: a program keeps its %s for its life", kept[i].what);
        return HED_EINVAL;
    }
    *out = w;
    return 0;
}

int
hed_sched_parse_client(const char *text, char name[HED_SCHED_NAME], struct hed_sched_wish *wish,
                       struct hed_why *why)
{
    const uint32_t own = HED_SCHED_GIVEN_PRIORITY | HED_SCHED_GIVEN_WEIGHT |
                         HED_SCHED_GIVEN_DEADLINE | HED_SCHED_GIVEN_GROUP;
    const size_t n = strcspn(text, ":");
    struct hed_sched_wish w = *wish;
    char begin[HED_SCHED_NAME] = "";
    char checked[HED_SCHED_NAME] = "";
    int err;

    /* What is too long is refused as such below. */
    memcpy(begin, text, n < sizeof begin ? n : 0);
    err = set_name(checked, "client", begin, why);
    if (err)
        return err;
    w.given = 0;
    if (text[n] && (err = set_all(&w, text + n + 1, why)) != 0)
        return err;
    if (w.given & ~own) {
        hed_why_set(why, "sched: a client of a process has prio, share, deadline_us and group of "
                         "its own, nothing else");
        return HED_EINVAL;
    }
    w.given |= wish->given;
    memcpy(name, checked, HED_SCHED_NAME);
    *wish = w;
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
