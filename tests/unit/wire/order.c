/* Tests of orders and reports: what is accepted of a peer that may say anything. */
#include "harness/unit.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/wire/order.h"
#include "remote/wire/wire.h"

static struct hed_order
good_order(void)
{
    struct hed_order o;

    hed_order_init(&o, HED_ORDER_MOVE);
    (void)hed_str_copy(o.address, sizeof o.address, "unix:/run/heddle.sock");
    return o;
}

static struct hed_order_report
good_report(void)
{
    struct hed_order_report r;

    hed_order_report_init(&r, 7, HED_ORDER_FAILED);
    (void)hed_str_copy(r.program, sizeof r.program, "train");
    (void)hed_str_copy(r.why, sizeof r.why, "no room");
    return r;
}

static void
good_ones_are_accepted(void **state)
{
    const struct hed_order o = good_order();
    const struct hed_order_report r = good_report();
    struct hed_order order;
    struct hed_order_report report;
    struct hed_why why = {""};

    (void)state;
    assert_int_equal(hed_order_check(&o, sizeof o, &order, &why), 0);
    assert_memory_equal(&order, &o, sizeof o);
    assert_int_equal(hed_order_report_check(&r, sizeof r, &report, &why), 0);
    assert_memory_equal(&report, &r, sizeof r);
    assert_string_equal(why.text, "");
}

/* A client that does not know an action refuses it by name, and stays connected. */
static void
unknown_actions_are_for_the_client_to_refuse(void **state)
{
    struct hed_order o = good_order(), out;

    (void)state;
    o.action = 99;
    assert_int_equal(hed_order_check(&o, sizeof o, &out, NULL), 0);
    assert_int_equal(out.action, 99);
}

static void
refuse_order(const struct hed_order *o, size_t size)
{
    struct hed_order out = {.action = 5};
    struct hed_why why = {""};

    assert_int_equal(hed_order_check(o, size, &out, &why), HED_EFORMAT);
    assert_string_not_equal(why.text, "");
    assert_int_equal(out.action, 5);
}

static void
bad_orders_are_refused(void **state)
{
    struct hed_order o = good_order();

    (void)state;
    refuse_order(&o, sizeof o - 1);
    refuse_order(&o, 0);
    o.head.size++;
    refuse_order(&o, sizeof o);
    o = good_order();
    o.head.kind = HED_MSG_ORDER_REPORT;
    refuse_order(&o, sizeof o);
    o = good_order();
    o.head.bulk = 1;
    refuse_order(&o, sizeof o);
    o = good_order();
    o.reserved = 1;
    refuse_order(&o, sizeof o);
    o = good_order();
    o.address[0] = '\0';
    refuse_order(&o, sizeof o);
    memset(o.address, 'x', sizeof o.address);
    refuse_order(&o, sizeof o);
    o = good_order();
    o.address[6] = '\x1b';
    refuse_order(&o, sizeof o);
}

static void
refuse_report(const struct hed_order_report *r, size_t size)
{
    struct hed_order_report out;
    struct hed_why why = {""};

    assert_int_equal(hed_order_report_check(r, size, &out, &why), HED_EFORMAT);
    assert_string_not_equal(why.text, "");
}

static void
bad_reports_are_refused(void **state)
{
    struct hed_order_report r = good_report();

    (void)state;
    refuse_report(&r, sizeof r - 1);
    r.state = 0;
    refuse_report(&r, sizeof r);
    r.state = HED_ORDER_FAILED + 1;
    refuse_report(&r, sizeof r);
    r = good_report();
    r.head.ticket = 1;
    refuse_report(&r, sizeof r);
    r = good_report();
    r.reserved[0] = 1;
    refuse_report(&r, sizeof r);
    r = good_report();
    memset(r.program, 'x', sizeof r.program);
    refuse_report(&r, sizeof r);
    r = good_report();
    memset(r.address, 'x', sizeof r.address);
    refuse_report(&r, sizeof r);
    r = good_report();
    memset(r.why, 'x', sizeof r.why);
    refuse_report(&r, sizeof r);
}

/* They are printed on an operator's terminal. */
static void
texts_of_reports_are_made_printable(void **state)
{
    struct hed_order_report r = good_report(), out;

    (void)state;
    (void)hed_str_copy(r.why, sizeof r.why, "a\x1b[2Jb\n\x7f\xc3\xa9");
    assert_int_equal(hed_order_report_check(&r, sizeof r, &out, NULL), 0);
    assert_string_equal(out.why, "a?[2Jb??\xc3\xa9");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_ones_are_accepted),
    cmocka_unit_test(unknown_actions_are_for_the_client_to_refuse),
    cmocka_unit_test(bad_orders_are_refused),
    cmocka_unit_test(bad_reports_are_refused),
    cmocka_unit_test(texts_of_reports_are_made_printable),
};

HED_UNIT_MAIN(tests)
