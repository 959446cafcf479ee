/* Reading the settings of sharing. */
#include "share/sched/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

#define TEXT_MAX 512
#define WEIGHT_MAX 10000
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."

static const char *const priorities[] = {
    [HED_PRIORITY_LOW] = "low",
    [HED_PRIORITY_NORMAL] = "normal",
    [HED_PRIORITY_HIGH] = "high",
};

static int
set_priority(struct hed_sched_settings *s, const char *value, struct hed_why *why)
{
    for (uint32_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
        if (strcmp(value, priorities[i]) != 0)
            continue;
        s->priority = i;
        s->given |= HED_SCHED_GIVEN_PRIORITY;
        return 0;
    }
    hed_why_set(why, "sched: prio=%.32s: there is no such priority; use high, normal or low",
                value);
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
set_policy(struct hed_sched_settings *s, const char *value, struct hed_why *why)
{
    const int i = hed_policy_find(value);
    char names[256];

    if (i < 0) {
        list_policies(names, sizeof names);
        hed_why_set(why, "sched: policy=%.32s: there is no such policy; use one of %s", value,
                    names);
        return HED_EINVAL;
    }
    s->policy = (uint32_t)i;
    s->given |= HED_SCHED_GIVEN_POLICY;
    return 0;
}

static int
set_name(char *out, const char *key, const char *value, struct hed_why *why)
{
    const size_t n = strspn(value, NAME_CHARS);

    if (n == 0 || value[n] != '\0' || n >= HED_SCHED_NAME) {
        hed_why_set(why,
                    "sched: %s \"%.40s\": a name has 1 to %d characters: letters, digits, '-' and "
                    "'.'",
                    key, value, HED_SCHED_NAME - 1);
        return HED_EINVAL;
    }
    memcpy(out, value, n + 1);
    return 0;
}

/* Settings that are one of two words. */
static const struct choice {
    const char *key;
    uint32_t given;
    size_t offset; /* of a bool */
    const char *no, *yes;
} choices[] = {
    {"mode", HED_SCHED_GIVEN_MODE, offsetof(struct hed_sched_settings, record), "gate", "record"},
    {"stream", HED_SCHED_GIVEN_STREAM, offsetof(struct hed_sched_settings, own_stream), "client",
     "own"},
    {"swap", HED_SCHED_GIVEN_SWAP, offsetof(struct hed_sched_settings, swap), "off", "on"},
};

static const struct choice *
find_choice(const char *key)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].key, key) == 0)
            return &choices[i];
    return NULL;
}

static int
set_choice(struct hed_sched_settings *s, const struct choice *c, const char *value,
           struct hed_why *why)
{
    const bool is = strcmp(value, c->yes) == 0;

    if (!is && strcmp(value, c->no) != 0) {
        hed_why_set(why, "sched: %s=%.32s: there is no such %s; use %s or %s", c->key, value,
                    c->key, c->no, c->yes);
        return HED_EINVAL;
    }
    memcpy((char *)s + c->offset, &is, sizeof is);
    s->given |= c->given;
    return 0;
}

/* Settings that are numbers. */
static const struct number {
    const char *key;
    uint32_t given;
    size_t offset;
    bool wide;          /* uint64_t, else uint32_t */
    uint64_t unit;      /* ns of a time, 1 of a count */
    uint64_t low, high; /* in that unit */
} numbers[] = {
#define AT(field) offsetof(struct hed_sched_settings, field)
    {"share", HED_SCHED_GIVEN_WEIGHT, AT(weight), false, 1, 1, WEIGHT_MAX},
    {"deadline_us", HED_SCHED_GIVEN_DEADLINE, AT(deadline), true, 1000, 1, 600000000},
    {"hold_us", HED_SCHED_GIVEN_HOLD, AT(params.hold), true, 1000, 0, 10000000},
    {"cap_us", HED_SCHED_GIVEN_CAP, AT(params.cap), true, 1000, 1, 10000000},
    {"slice_us", HED_SCHED_GIVEN_SLICE, AT(params.slice), true, 1000, 10, 10000000},
    {"batch", HED_SCHED_GIVEN_BATCH, AT(params.batch), false, 1, 1, 100000},
    {"batch_wait_us", HED_SCHED_GIVEN_BATCH_WAIT, AT(params.batch_wait), true, 1000, 1, 10000000},
    {"queue", HED_SCHED_GIVEN_QUEUE, AT(queue), false, 1, 1, 65536},
    {"queues", HED_SCHED_GIVEN_QUEUES, AT(queues), false, 1, 1, 16},
#undef AT
};

static int
set_number(struct hed_sched_settings *s, const char *key, const char *value, struct hed_why *why)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *n = &numbers[i];
        char *at = (char *)s + n->offset;
        uint64_t v;

        if (strcmp(n->key, key) != 0)
            continue;
        if (hed_parse_u64(value, &v) || v < n->low || v > n->high) {
            hed_why_set(why, "sched: %s=%.32s: use a number from %llu to %llu", key, value,
                        (unsigned long long)n->low, (unsigned long long)n->high);
            return HED_EINVAL;
        }
        v *= n->unit;
        if (n->wide)
            memcpy(at, &v, sizeof v);
        else
            memcpy(at, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
        s->given |= n->given;
        return 0;
    }
    hed_why_set(why,
                "sched: there is no setting '%.32s'; use prio, share, policy, group, scope, "
                "deadline_us, hold_us, cap_us, slice_us, batch, batch_wait_us, swap, mode, "
                "stream, queue or queues",
                key);
    return HED_EINVAL;
}

static int
set_pair(struct hed_sched_settings *s, char *pair, struct hed_why *why)
{
    char *value = strchr(pair, '=');
    const struct choice *choice;
    int err;

    if (!value) {
        hed_why_set(why, "sched: '%.64s': use KEY=VALUE", pair);
        return HED_EFORMAT;
    }
    *value++ = '\0';
    if (strcmp(pair, "prio") == 0)
        return set_priority(s, value, why);
    if (strcmp(pair, "policy") == 0)
        return set_policy(s, value, why);
    if ((choice = find_choice(pair)) != NULL)
        return set_choice(s, choice, value, why);
    if (strcmp(pair, "group") == 0 || strcmp(pair, "scope") == 0) {
        const bool group = *pair == 'g';

        err = set_name(group ? s->group : s->scope, pair, value, why);
        s->given |= group ? HED_SCHED_GIVEN_GROUP : HED_SCHED_GIVEN_SCOPE;
        return err;
    }
    return set_number(s, pair, value, why);
}

/* Adds a list to the settings that are there already. */
static int
set_list(struct hed_sched_settings *s, const char *text, struct hed_why *why)
{
    char list[TEXT_MAX];
    char *rest = list;
    char *pair;

    if (!hed_str_copy(list, sizeof list, text)) {
        hed_why_set(why, "sched: the settings have %zu characters; at most %d are allowed",
                    strlen(text), TEXT_MAX - 1);
        return HED_ELIMIT;
    }
    while ((pair = strsep(&rest, ",")) != NULL) {
        const int err = set_pair(s, hed_str_trim(pair), why);

        if (err)
            return err;
    }
    return 0;
}

static struct hed_sched_settings
default_settings(void)
{
    return (struct hed_sched_settings){
        .priority = HED_PRIORITY_NORMAL,
        .weight = 100,
        .policy = HED_POLICY_DEFAULT,
        .params = hed_sched_defaults,
        .queue = HED_SCHED_QUEUE,
        .queues = HED_SCHED_QUEUES,
    };
}

int
hed_sched_parse(const char *text, struct hed_sched_settings *out, struct hed_why *why)
{
    struct hed_sched_settings s = default_settings();
    const int err = strcmp(text, "on") == 0 ? 0 : set_list(&s, text, why);

    if (err)
        return err;
    if (!s.record &&
        (s.given & (HED_SCHED_GIVEN_STREAM | HED_SCHED_GIVEN_QUEUE | HED_SCHED_GIVEN_QUEUES))) {
        hed_why_set(why, "sched: stream, queue and queues need mode=record");
        return HED_EINVAL;
    }
    *out = s;
    return 0;
}

int
hed_sched_parse_change(const char *text, struct hed_sched_settings *out, struct hed_why *why)
{
    static const struct {
        uint32_t given;
        const char *key;
    } constant[] = {
        {HED_SCHED_GIVEN_GROUP, "group"}, {HED_SCHED_GIVEN_SCOPE, "scope"},
        {HED_SCHED_GIVEN_MODE, "mode"},   {HED_SCHED_GIVEN_STREAM, "stream"},
        {HED_SCHED_GIVEN_QUEUE, "queue"}, {HED_SCHED_GIVEN_QUEUES, "queues"},
    };
    struct hed_sched_settings s = default_settings();
    const int err = set_list(&s, text, why);

    if (err)
        return err;
    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++) {
        if (!(s.given & constant[i].given))
            continue;
        hed_why_set(why,
                    "sched: a program keeps its %s for its life; give it to heddle run --sched",
                    constant[i].key);
        return HED_EINVAL;
    }
    *out = s;
    return 0;
}

int
hed_sched_parse_client(const char *text, char name[HED_SCHED_NAME],
                       struct hed_sched_settings *settings, struct hed_why *why)
{
    const uint32_t own = HED_SCHED_GIVEN_PRIORITY | HED_SCHED_GIVEN_WEIGHT |
                         HED_SCHED_GIVEN_DEADLINE | HED_SCHED_GIVEN_GROUP;
    const size_t n = strcspn(text, ":");
    struct hed_sched_settings s = *settings;
    char begin[HED_SCHED_NAME + 1] = "";
    char checked[HED_SCHED_NAME] = "";
    int err;

    memcpy(begin, text, n < sizeof begin ? n : sizeof begin - 1); /* enough to see: too long */
    err = set_name(checked, "client", begin, why);
    if (err)
        return err;
    s.given = 0;
    if (text[n] && (err = set_list(&s, text + n + 1, why)) != 0)
        return err;
    if (s.given & ~own) {
        hed_why_set(why,
                    "sched: client \"%s\": a client of a process can have its own prio, share, "
                    "deadline_us and group, and nothing else",
                    checked);
        return HED_EINVAL;
    }
    s.given |= settings->given;
    memcpy(name, checked, HED_SCHED_NAME);
    *settings = s;
    return 0;
}
