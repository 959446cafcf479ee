/* The list of certificates that are refused: whom it names, however it is written. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/gate/gate.h"

#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* 63 characters */
#define PRINT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct hed_conn_who
client(const char *name)
{
    struct hed_conn_who who = {.certified = true};

    (void)snprintf(who.name, sizeof who.name, "%s", name);
    hed_conn_show_name(who.name);
    for (int i = 0; i < 32; i++)
        who.fingerprint[i] = (uint8_t)(i % 16 * 0x11);
    return who;
}

static int
read_list(const char *text, size_t size, struct hed_deny_list *out)
{
    char path[] = "/tmp/heddle-deny-XXXXXX";
    const int fd = mkstemp(path);
    struct hed_why why = {""};

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    close(fd);

    const int err = hed_deny_read(path, out, &why);

    unlink(path);
    return err;
}

static void
the_list_names_clients(void **state)
{
    static const struct {
        const char *list, *name;
        bool denied;
    } rows[] = {
        {"", "alice", false},
        {"alice", "alice", true},
        {"  alice \t# gone\r\nbob", "alice", true},
        {"bob\nalice\n", "alice", true},
        {"alic\nalicea\n#alice\n", "alice", false},
        {"#\n\n \n", "", false},
        {PRINT, "x", true},
        {"00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:"
         "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF",
         "x", true},
        {PRINT "0", "x", false},
        {"0", "x", false},
        /* As long as X.509 allows. */
        {LONG "b", LONG "b", true},
        {LONG "c", LONG "b", false},
        {LONG, LONG "b", false},
        /* Not in ASCII. */
        {"J\303\274rgen", "J\303\274rgen", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct hed_conn_who who = client(rows[i].name);
        struct hed_deny_list list;

        assert_int_equal(read_list(rows[i].list, strlen(rows[i].list), &list), 0);
        if (hed_deny_has(&list, &who) != rows[i].denied)
            fail_msg("row %zu", i);
        free(list.text);
    }
}

/* In UTF-16, say. */
static void
a_list_with_zeros_is_refused(void **state)
{
    static const char text[] = "alice\n\0bob\n";
    struct hed_deny_list list;

    assert_int_equal(read_list(text, sizeof text - 1, &list), HED_EIO);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_list_names_clients),
    cmocka_unit_test(a_list_with_zeros_is_refused),
};

HED_UNIT_MAIN(tests)
