/* Tests of addresses: which are accepted, which are refused with which message, and how they are
 * printed. */
#include "harness/unit.h"

#include "base/err.h"
#include "remote/wire/transport.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
addresses_are_read_and_printed(void **state)
{
    static const struct {
        const char *text;
        uint32_t transport;
        const char *where;
        unsigned port;
        const char *printed; /* NULL if it is printed as it was given */
    } rows[] = {
        {"unix:/run/heddle.sock", HED_TRANSPORT_UNIX, "/run/heddle.sock", 0, NULL},
        {"unix:a b:c", HED_TRANSPORT_UNIX, "a b:c", 0, NULL},
        {"shm:/tmp/x", HED_TRANSPORT_SHM, "/tmp/x", 0, NULL},
        {"tcp://localhost:1", HED_TRANSPORT_TCP, "localhost", 1, NULL},
        {"tcp://localhost", HED_TRANSPORT_TCP, "localhost", 7717, "tcp://localhost:7717"},
        {"tcp://10.0.0.1:65535", HED_TRANSPORT_TCP, "10.0.0.1", 65535, NULL},
        {"tcp://a_b-c.example:0", HED_TRANSPORT_TCP, "a_b-c.example", 0, NULL},
        {"tcp://[::1]:0080", HED_TRANSPORT_TCP, "::1", 80, "tcp://[::1]:80"},
        {"tcp://[::]", HED_TRANSPORT_TCP, "::", 7717, "tcp://[::]:7717"},
        {"tcp://[fe80::1%eth0]:5", HED_TRANSPORT_TCP, "fe80::1%eth0", 5, NULL},
        {"tcp://[::ffff:1.2.3.4]:5", HED_TRANSPORT_TCP, "::ffff:1.2.3.4", 5, NULL},
        {"vm:", HED_TRANSPORT_VM, "", 7717, "vm:auto"},
        {"vm:auto", HED_TRANSPORT_VM, "", 7717, NULL},
        {"vm:alpha-1", HED_TRANSPORT_VM, "alpha-1", 7717, NULL},
        {"vm:alpha,size=1G", HED_TRANSPORT_VM, "alpha", 7717, "vm:alpha"},
        {"vm:alpha,size=64M", HED_TRANSPORT_VM, "alpha", 7717, NULL},
        {"vm:alpha,size=0", HED_TRANSPORT_VM, "alpha", 7717, "vm:alpha,size=0M"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hed_address a;
        struct hed_why why = {""};
        char text[512];

        if (hed_address_parse(rows[i].text, &a, &why))
            fail_msg("%s: %s", rows[i].text, why.text);
        assert_true(hed_address_is(rows[i].text));
        assert_int_equal(a.transport->id, rows[i].transport);
        assert_string_equal(a.path[0] ? a.path : a.host, rows[i].where);
        assert_int_equal(a.port, rows[i].port);
        hed_address_text(&a, text, sizeof text);
        assert_string_equal(text, rows[i].printed ? rows[i].printed : rows[i].text);
    }
}

static void
what_is_no_address_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"", "is not the address"},
        {"unix", "is not the address"},
        {"UNIX:/x", "is not the address"},
        {"/run/x.sock", "is not the address"},
        {"tcp:host:1", "is not the address"},
        {"tcp:/host", "is not the address"},
        {"http://host", "is not the address"},
        {"unix:", "path of the socket is missing"},
        {"shm:", "path of the socket is missing"},
        {"unix:/a\nb", "control character"},
        {"vm:.x", "name of a guest"},
        {"vm:a/b", "name of a guest"},
        {"vm:a b", "name of a guest"},
        {"vm:,size=1G", "name of a guest"},
        {"vm:a,sise=1G", "expected vm:NAME"},
        {"vm:a,size=", "size of a window"},
        {"vm:a,size=3M", "size of a window"},
        {"vm:a,size=100M", "size of a window"},
        {"vm:a,size=4096T", "size of a window"},
        {"tcp://", "name or address of a host"},
        {"tcp://:7717", "name or address of a host"},
        {"tcp://-x", "name or address of a host"},
        {"tcp://.x", "name or address of a host"},
        {"tcp://a..b", "name or address of a host"},
        {"tcp://a b", "name or address of a host"},
        {"tcp://me@host:1", "name or address of a host"},
        {"tcp://host/", "name or address of a host"},
        {"tcp://host:", "after the host"},
        {"tcp://host:x", "is not a port"},
        {"tcp://host:1/", "is not a port"},
        {"tcp://host:-1", "is not a port"},
        {"tcp://host:+1", "is not a port"},
        {"tcp://host:0x10", "is not a port"},
        {"tcp://host:65536", "is not a port"},
        {"tcp://host:000001", "is not a port"},
        {"tcp://::1", "in brackets"},
        {"tcp://fe80::1:80", "in brackets"},
        {"tcp://[::1", "the ']' after"},
        {"tcp://[]", "an IPv6 address"},
        {"tcp://[host]:1", "an IPv6 address"},
        {"tcp://[::1%]:1", "an IPv6 address"},
        {"tcp://[::1%a/b]:1", "an IPv6 address"},
        {"tcp://[1.2.3.4]:1", "an IPv6 address"},
        {"tcp://[::1]80", "after the host"},
        {"tcp://[::1]:", "after the host"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hed_address a;
        struct hed_why why = {""};

        memset(&a, 0x5a, sizeof a);
        assert_int_equal(hed_address_parse(rows[i].text, &a, &why), HED_EINVAL);
        if (!strstr(why.text, rows[i].word))
            fail_msg("%s: %s", rows[i].text, why.text);
        for (size_t k = 0; k < sizeof a; k++)
            assert_int_equal(((unsigned char *)&a)[k], 0x5a);
        assert_int_equal(hed_address_parse(rows[i].text, &a, NULL), HED_EINVAL);
    }
}

static void
long_names_are_refused_and_the_longest_are_not(void **state)
{
    struct hed_address a;
    struct hed_why why;
    char text[1040];

    for (size_t n = 1; n < 600; n++) {
        char name[1024];

        memset(name, 'p', n);
        name[n] = '\0';
        (void)snprintf(text, sizeof text, "unix:%s", name);
        assert_int_equal(hed_address_parse(text, &a, &why), n <= 107 ? 0 : HED_ELIMIT);
        (void)snprintf(text, sizeof text, "tcp://%s", name);
        assert_int_equal(hed_address_parse(text, &a, &why) == 0, n <= 253);
        (void)snprintf(text, sizeof text, "tcp://%s:1", name);
        assert_int_equal(hed_address_parse(text, &a, &why) == 0, n <= 253);
    }
}

static void
an_address_is_printed_into_any_room(void **state)
{
    const struct hed_address a = {
        .transport = hed_transport_by_id(HED_TRANSPORT_TCP), .host = "host", .port = 1};
    const struct hed_address none = {.transport = NULL};
    char text[32];

    memset(text, 'x', sizeof text);
    hed_address_text(&a, text, 5);
    assert_string_equal(text, "tcp:");
    assert_int_equal(text[5], 'x');
    hed_address_text(&none, text, sizeof text);
    assert_string_equal(text, "?");
    assert_false(hed_address_is("gpu"));
    assert_false(hed_address_is("cpu:h100"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_are_read_and_printed),
    cmocka_unit_test(what_is_no_address_is_refused_with_the_reason),
    cmocka_unit_test(long_names_are_refused_and_the_longest_are_not),
    cmocka_unit_test(an_address_is_printed_into_any_room),
};

HED_UNIT_MAIN(tests)
