/* Fuzz target: orders and reports. What is accepted has texts that end and can be shown, and is
 * accepted again as it is.
 */
#include "harness/fuzz.h"

#include <string.h>

#include "base/err.h"
#include "remote/wire/order.h"
#include "remote/wire/wire.h"

static void
must_show(const char *text, size_t size)
{
    must(strnlen(text, size) < size);
    for (; *text; text++)
        must((unsigned char)*text >= ' ' && (unsigned char)*text != 0x7f);
}

static void
check_accepted_order(const struct hed_order *o)
{
    struct hed_order again;

    must(o->head.kind == HED_MSG_ORDER && o->head.size == sizeof *o && o->address[0]);
    must_show(o->address, sizeof o->address);
    must(hed_order_check(o, sizeof *o, &again, NULL) == 0 && memcmp(o, &again, sizeof *o) == 0);
}

static void
check_accepted_report(const struct hed_order_report *r)
{
    struct hed_order_report again;

    must(r->head.kind == HED_MSG_ORDER_REPORT && r->state >= HED_ORDER_GOING &&
         r->state <= HED_ORDER_FAILED);
    must_show(r->program, sizeof r->program);
    must_show(r->address, sizeof r->address);
    must_show(r->why, sizeof r->why);
    must(hed_order_report_check(r, sizeof *r, &again, NULL) == 0 &&
         memcmp(r, &again, sizeof *r) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_order order;
    struct hed_order_report report;
    struct hed_why why = {""};

    if (hed_order_check(data, size, &order, &why) == 0)
        check_accepted_order(&order);
    else
        must(why.text[0] != '\0');
    if (hed_order_report_check(data, size, &report, NULL) == 0)
        check_accepted_report(&report);
    /* Most inputs have no head, so theirs is made right. */
    hed_order_init(&order, 1);
    if (size > sizeof order.head)
        memcpy((char *)&order + sizeof order.head, data,
               size < sizeof order ? size - sizeof order.head : sizeof order - sizeof order.head);
    if (hed_order_check(&order, sizeof order, &order, NULL) == 0)
        check_accepted_order(&order);
    hed_order_report_init(&report, 1, HED_ORDER_DONE);
    if (size > sizeof report.head)
        memcpy((char *)&report + sizeof report.head, data,
               size < sizeof report ? size - sizeof report.head
                                    : sizeof report - sizeof report.head);
    if (hed_order_report_check(&report, sizeof report, &report, NULL) == 0)
        check_accepted_report(&report);
    return 0;
}
