/* Tests of the rules by which a program obeys its server. */
#include "harness/unit.h"

#include "base/err.h"
#include "move/session/orders.h"
#include "remote/wire/transport.h"

#define OWN 1000
#define OTHER 1001

/* The kinds of servers that a program may be at. */
static const struct hed_remote_trust own = {.local = true, .server = OWN, .own = OWN};
static const struct hed_remote_trust roots = {.local = true, .server = 0, .own = OWN};
static const struct hed_remote_trust others = {.local = true, .server = OTHER, .own = OWN};
static const struct hed_remote_trust tls = {.own = OWN, .secure = true};
static const struct hed_remote_trust plain = {.own = OWN, .insecure = true};
static const struct hed_remote_trust careless = {
    .local = true, .server = OWN, .own = OWN, .insecure = true};

static bool
may_go(const struct hed_remote_trust *from, enum hed_remote_obeys obeys, const char *to)
{
    struct hed_remote_trust t = *from;
    struct hed_address a;
    struct hed_why why = {""};

    t.obeys = obeys;
    assert_int_equal(hed_address_parse(to, &a, &why), 0);

    const int err = hed_remote_may_go(&t, &a, &why);

    assert_true(err == 0 || (err == HED_EACCESS && why.text[0]));
    return err == 0;
}

static void
rules_hold(void **state)
{
    static const struct {
        const struct hed_remote_trust *from;
        const char *to;
        bool trusted, on;
    } rows[] = {
        {&own, "unix:/a", true, true},       {&own, "shm:/a", true, true},
        {&own, "tcp://a", true, true},       {&own, "vm:a", false, false},
        {&roots, "shm:/a", true, true},      {&roots, "tcp://a", true, true},
        {&others, "shm:/a", false, true},    {&others, "tcp://a", false, true},
        {&tls, "tcp://a", true, true},       {&tls, "unix:/a", false, false},
        {&tls, "shm:/a", false, false},      {&tls, "vm:", false, false},
        {&plain, "tcp://a", false, true},    {&plain, "unix:/a", false, false},
        {&careless, "shm:/a", true, true}, /* no word of it leaves the machine */
        {&careless, "tcp://a", false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_false(may_go(rows[i].from, HED_OBEYS_NONE, rows[i].to));
        if (may_go(rows[i].from, HED_OBEYS_TRUSTED, rows[i].to) != rows[i].trusted ||
            may_go(rows[i].from, HED_OBEYS_ALL, rows[i].to) != rows[i].on)
            fail_msg("row %zu, to %s", i, rows[i].to);
    }
}

/* Whatever the settings have become meanwhile. */
static void
tls_is_never_given_up(void **state)
{
    struct hed_remote_trust t = tls;

    (void)state;
    t.insecure = true;
    assert_false(may_go(&t, HED_OBEYS_TRUSTED, "tcp://a"));
    assert_false(may_go(&t, HED_OBEYS_ALL, "tcp://a"));
}

static void
new_servers_of_strangers_are_not_trusted(void **state)
{
    struct hed_remote_trust t = own;
    struct hed_why why = {""};

    (void)state;
    t.obeys = HED_OBEYS_TRUSTED;
    assert_int_equal(hed_remote_may_trust(&t, 0, &why), 0);
    assert_int_equal(hed_remote_may_trust(&t, OWN, &why), 0);
    assert_int_equal(hed_remote_may_trust(&t, OTHER, &why), HED_EACCESS);
    assert_string_not_equal(why.text, "");
    t.obeys = HED_OBEYS_ALL;
    assert_int_equal(hed_remote_may_trust(&t, OTHER, &why), 0);
}

static void
settings_have_meanings(void **state)
{
    (void)state;
    assert_int_equal(hed_remote_obeys("on"), HED_OBEYS_ALL);
    assert_int_equal(hed_remote_obeys("trusted"), HED_OBEYS_TRUSTED);
    assert_int_equal(hed_remote_obeys("off"), HED_OBEYS_NONE);
    assert_int_equal(hed_remote_obeys(""), HED_OBEYS_NONE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rules_hold),
    cmocka_unit_test(tls_is_never_given_up),
    cmocka_unit_test(new_servers_of_strangers_are_not_trusted),
    cmocka_unit_test(settings_have_meanings),
};

HED_UNIT_MAIN(tests)
