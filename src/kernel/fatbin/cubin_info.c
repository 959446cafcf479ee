/* The records of a cubin's .nv.info and .nv.compat sections. See cubin.h.
 *
 *     format u8, attribute u8, then by format:  1  two unused bytes
 *                                               2  u8 value, one unused byte
 *                                               3  u16 value
 *                                               4  u16 length, that many bytes
 */
#include <stddef.h>

#include "base/err.h"
#include "kernel/fatbin/cubin.h"

enum attribute {
    MAX_THREADS = 0x05,
    PARAM_CBANK = 0x0a,
    REQNTID = 0x10,
    MIN_STACK_SIZE = 0x12,
    KPARAM_INFO = 0x17,
    CBANK_PARAM_SIZE = 0x19,
    MAXREG_COUNT = 0x1b,
    REGCOUNT = 0x2f,
    CUDA_API_VERSION = 0x37,
    CTA_PER_CLUSTER = 0x3d,
    MAX_CLUSTER_RANK = 0x3f,
    KPARAM_INFO_V2 = 0x45,
    NUM_BARRIERS = 0x4c,
};

#define COMPAT_EXACT 0x09 /* in .nv.compat */
#define KPARAM_SIZE 12
#define KPARAM_SIZE_SHIFT 18
#define NO_LIMIT 0xff /* MAXREG_COUNT if no limit was set */

/* A parameter that has not been seen yet; no real one is that large. */
#define UNSEEN UINT32_MAX

int
hed_cubin_info_each(struct hed_bytes b, hed_cubin_info_fn fn, void *arg)
{
    for (size_t at = 0; at < b.size;) {
        const uint8_t *p = hed_bytes_at(b, at, 4);
        struct hed_bytes value = {NULL, 0};
        size_t n = 4;

        if (!p || p[0] < 1 || p[0] > 4)
            return HED_EFORMAT;
        if (p[0] == 4) {
            n += hed_load_u16(p + 2);
            if (!hed_bytes_has(b, at, n))
                return HED_EFORMAT;
            value = hed_bytes_cut(b, at + 4, n - 4);
        } else if (p[0] > 1) {
            value = (struct hed_bytes){p + 2, p[0] - 1u};
        }

        const int r = fn(arg, p[1], value);

        if (r < 0)
            return r;
        at += n;
    }
    return 0;
}

/* Reads a number of one, two or four bytes. */
static uint32_t
info_number(struct hed_bytes v)
{
    if (v.size >= 4)
        return hed_load_u32(v.data);
    if (v.size >= 2)
        return hed_load_u16(v.data);
    return v.size ? v.data[0] : 0;
}

static void
triple(struct hed_bytes v, uint32_t out[3])
{
    for (size_t i = 0; i < 3; i++)
        out[i] = v.size >= (i + 1) * 4 ? hed_load_u32(v.data + i * 4) : 0;
}

struct reading {
    struct hed_cubin_kernel *k;
    uint32_t *api;
    uint32_t seen; /* parameter records */
};

static int
read_param(struct reading *r, uint8_t attribute, struct hed_bytes v)
{
    if (v.size < KPARAM_SIZE)
        return HED_EFORMAT;
    r->seen++;
    if (!r->k->params)
        return 0;

    const uint16_t ordinal = hed_load_u16(v.data + 4);
    const uint32_t packed = hed_load_u32(v.data + 8);

    if (ordinal >= r->k->param_count || r->k->params[ordinal].size != UNSEEN)
        return HED_EFORMAT;
    r->k->params[ordinal] = (struct hed_cubin_param){
        .offset = hed_load_u16(v.data + 6),
        .size = attribute == KPARAM_INFO ? packed >> KPARAM_SIZE_SHIFT : packed & 0xffff,
    };
    return 0;
}

static int
read_record(void *arg, uint8_t attribute, struct hed_bytes v)
{
    struct reading *r = arg;
    struct hed_cubin_kernel *k = r->k;

    switch (attribute) {
    case KPARAM_INFO:
    case KPARAM_INFO_V2:
        return read_param(r, attribute, v);
    case CBANK_PARAM_SIZE:
        k->param_bytes = info_number(v);
        break;
    case PARAM_CBANK:
        k->param_bank = v.size >= 6 ? hed_load_u16(v.data + 4) : 0;
        break;
    case MAX_THREADS:
        triple(v, k->max_threads);
        break;
    case REQNTID:
        triple(v, k->required_threads);
        break;
    case CTA_PER_CLUSTER:
        triple(v, k->cluster);
        break;
    case MAX_CLUSTER_RANK:
        k->max_cluster = info_number(v);
        break;
    case MAXREG_COUNT:
        k->max_registers = info_number(v) == NO_LIMIT ? 0 : info_number(v);
        break;
    case NUM_BARRIERS:
        k->barriers = info_number(v);
        break;
    case CUDA_API_VERSION:
        *r->api = info_number(v);
        break;
    default:
        break;
    }
    return 0;
}

int
hed_cubin_info_kernel(struct hed_bytes b, struct hed_cubin_kernel *k, uint32_t *api)
{
    struct reading r = {.k = k, .api = api};

    for (uint32_t i = 0; k->params && i < k->param_count; i++)
        k->params[i] = (struct hed_cubin_param){0, UNSEEN};

    const int err = hed_cubin_info_each(b, read_record, &r);

    if (err != 0)
        return err;
    if (k->params)
        return r.seen == k->param_count ? 0 : HED_EFORMAT;
    k->param_count = r.seen;
    return 0;
}

bool
hed_cubin_info_global(uint8_t attribute, struct hed_bytes v, uint32_t *symbol,
                      struct hed_cubin_kernel *into)
{
    if ((attribute != REGCOUNT && attribute != MIN_STACK_SIZE) || v.size < 8)
        return false;
    *symbol = hed_load_u32(v.data);
    if (!into)
        return true;
    if (attribute == REGCOUNT)
        into->registers = hed_load_u32(v.data + 4);
    else
        into->stack = hed_load_u32(v.data + 4);
    return true;
}

static int
read_compat(void *arg, uint8_t attribute, struct hed_bytes v)
{
    bool *exact = arg;

    if (attribute == COMPAT_EXACT)
        *exact = info_number(v) == 1;
    return 0;
}

bool
hed_cubin_info_exact(struct hed_bytes compat)
{
    bool exact = false;

    /* Bad records are no reason to refuse code that is otherwise good. */
    hed_cubin_info_each(compat, read_compat, &exact);
    return exact;
}
