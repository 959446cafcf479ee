/* Orders and reports. See order.h. */
#include "remote/wire/order.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "remote/wire/wire.h"

static void
init_order_head(struct hed_msg *m, enum hed_msg_kind kind, size_t size, uint64_t number)
{
    m->size = (uint32_t)size;
    m->kind = (uint16_t)kind;
    m->number = number;
}

void
hed_order_init(struct hed_order *o, uint32_t action)
{
    memset(o, 0, sizeof *o);
    init_order_head(&o->head, HED_MSG_ORDER, sizeof *o, 0);
    o->action = action;
}

void
hed_order_report_init(struct hed_order_report *r, uint64_t number, uint32_t state)
{
    memset(r, 0, sizeof *r);
    init_order_head(&r->head, HED_MSG_ORDER_REPORT, sizeof *r, number);
    r->state = state;
}

/* Nothing of a head but size, kind and number has a meaning here. */
static bool
is_order_head(const struct hed_msg *m, enum hed_msg_kind kind, size_t size)
{
    struct hed_msg right = {0};

    init_order_head(&right, kind, size, m->number);
    return memcmp(m, &right, sizeof right) == 0;
}

static bool
order_text_ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static bool
is_control_character(char c)
{
    return (unsigned char)c < ' ' || (unsigned char)c == 0x7f;
}

/* Texts are shown on terminals. */
static void
show_order_text(char *text)
{
    for (char *p = text; *p; p++)
        if (is_control_character(*p))
            *p = '?';
}

int
hed_order_check(const void *bytes, size_t n, struct hed_order *out, struct hed_why *why)
{
    struct hed_order o;

    if (n != sizeof o) {
        hed_why_set(why, "an order has another size than it should");
        return HED_EFORMAT;
    }
    memcpy(&o, bytes, sizeof o);
    if (!is_order_head(&o.head, HED_MSG_ORDER, sizeof o) || o.reserved) {
        hed_why_set(why, "this is not an order");
        return HED_EFORMAT;
    }
    if (!order_text_ends(o.address, sizeof o.address) || !o.address[0]) {
        hed_why_set(why, "an order has no address, or one that does not end");
        return HED_EFORMAT;
    }
    for (const char *p = o.address; *p; p++)
        if (is_control_character(*p)) {
            hed_why_set(why, "the address of an order has control characters");
            return HED_EFORMAT;
        }
    *out = o;
    return 0;
}

int
hed_order_report_check(const void *bytes, size_t n, struct hed_order_report *out,
                       struct hed_why *why)
{
    struct hed_order_report r;

    if (n != sizeof r) {
        hed_why_set(why, "a report has another size than it should");
        return HED_EFORMAT;
    }
    memcpy(&r, bytes, sizeof r);
    if (!is_order_head(&r.head, HED_MSG_ORDER_REPORT, sizeof r) || r.reserved[0] ||
        r.state < HED_ORDER_GOING || r.state > HED_ORDER_FAILED) {
        hed_why_set(why, "this is not a report about an order");
        return HED_EFORMAT;
    }
    if (!order_text_ends(r.program, sizeof r.program) ||
        !order_text_ends(r.address, sizeof r.address) || !order_text_ends(r.why, sizeof r.why)) {
        hed_why_set(why, "a report has a text that does not end");
        return HED_EFORMAT;
    }
    show_order_text(r.program);
    show_order_text(r.address);
    show_order_text(r.why);
    *out = r;
    return 0;
}
