/* The text of a profile: JSON into struct hed_profile. docs/internals/profiles.md has the format.
 *
 * A file is read on top of its base, so every key is optional here; hed_profile_check() decides
 * whether the result is a complete device. Unknown keys are refused, since a misspelt key would
 * otherwise be ignored silently.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/names.h"
#include "base/str.h"
#include "driver/profile.h"
#include "gen/cuda_abi.h"
#include "gen/cuda_names.h"

#define ATTRIBUTE_PREFIX "CU_DEVICE_ATTRIBUTE_"

static void
set_attribute(struct hed_profile *p, unsigned attribute, int value)
{
    p->attributes[attribute] = value;
    p->has_attribute[attribute / 64] |= 1ull << attribute % 64;
}

#ifdef HED_HAVE_JANSSON

#include <jansson.h>

/* Maps each key to a field of struct hed_profile. SIZE is a number of bytes, or text such as "16G";
 * ID is text such as "0x233010de". */
enum kind { KIND_TEXT, KIND_SIZE, KIND_NUMBER, KIND_BOOL, KIND_ID };

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    size_t size;
};

#define FIELD(key, kind, member)                                \
    {                                                           \
        key, KIND_##kind, offsetof(struct hed_profile, member), \
            sizeof((struct hed_profile *)0)->member             \
    }

static const struct field top_fields[] = {
    FIELD("name", TEXT, name),
    FIELD("memory", SIZE, memory),
    FIELD("accepts_newer_ptx", BOOL, accepts_newer_ptx),
    {0},
};

static const struct field nvml_fields[] = {
    FIELD("brand", TEXT, brand),
    FIELD("architecture", TEXT, architecture),
    FIELD("vbios", TEXT, vbios),
    FIELD("pci_device_id", ID, pci_device_id),
    FIELD("pci_subsystem_id", ID, pci_subsystem_id),
    FIELD("clock_graphics", NUMBER, clock_graphics),
    FIELD("clock_sm", NUMBER, clock_sm),
    FIELD("clock_memory", NUMBER, clock_memory),
    FIELD("clock_video", NUMBER, clock_video),
    FIELD("power_limit", NUMBER, power_limit),
    FIELD("power_idle", NUMBER, power_idle),
    FIELD("temperature_idle", NUMBER, temperature_idle),
    FIELD("temperature_slowdown", NUMBER, temperature_slowdown),
    FIELD("temperature_shutdown", NUMBER, temperature_shutdown),
    FIELD("pcie_generation", NUMBER, pcie_generation),
    FIELD("pcie_width", NUMBER, pcie_width),
    FIELD("fans", NUMBER, fans),
    {0},
};

/* What is being read, and where reasons for a failure go. */
struct reading {
    struct hed_profile *p;
    const char *label;
    struct hed_why *why;
};

static int
refuse_key(const struct reading *r, const char *key, const char *what)
{
    hed_why_set(r->why, "%s: %.64s %s", r->label, key, what);
    return HED_EFORMAT;
}

/* Reads a number from 0 to `high`, written as a JSON number or as text that `parse` accepts. */
static int
get_json_number(const json_t *v, int (*parse)(const char *, uint64_t *), uint64_t high,
                uint64_t *out)
{
    if (json_is_integer(v) && json_integer_value(v) >= 0)
        *out = (uint64_t)json_integer_value(v);
    else if (!json_is_string(v) || !parse || parse(json_string_value(v), out) != 0)
        return HED_EFORMAT;
    return *out <= high ? 0 : HED_EFORMAT;
}

static int
read_text(const struct reading *r, const struct field *f, const json_t *v)
{
    const char *text = json_string_value(v);

    if (!text || !*text || strlen(text) >= f->size)
        return refuse_key(r, f->key, "is not text, empty or too long");
    for (const char *c = text; *c; c++)
        if (!isprint((unsigned char)*c))
            return refuse_key(r, f->key, "has characters that cannot be printed");
    (void)hed_str_copy((char *)r->p + f->offset, f->size, text);
    return 0;
}

static int
read_field(const struct reading *r, const struct field *f, const json_t *v)
{
    char *at = (char *)r->p + f->offset;
    uint64_t n = 0;
    uint32_t small;

    switch (f->kind) {
    case KIND_TEXT:
        return read_text(r, f, v);
    case KIND_BOOL:
        if (!json_is_boolean(v))
            return refuse_key(r, f->key, "is neither true nor false");
        *(bool *)at = json_is_true(v);
        return 0;
    case KIND_SIZE:
        if (get_json_number(v, hed_parse_size, INT64_MAX, &n) != 0)
            return refuse_key(r, f->key, "is not a size such as \"16G\"");
        memcpy(at, &n, sizeof n);
        return 0;
    case KIND_NUMBER:
    case KIND_ID:
        if (get_json_number(v, f->kind == KIND_ID ? hed_parse_u64 : NULL, UINT32_MAX, &n) != 0)
            return refuse_key(r, f->key, "is not a number that fits");
        small = (uint32_t)n;
        memcpy(at, &small, sizeof small);
        return 0;
    }
    return 0;
}

/* The field of a key, or NULL. */
static const struct field *
find_field(const struct field *fields, const char *key)
{
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static int
read_nvml(const struct reading *r, json_t *object)
{
    const char *key;
    json_t *v;

    if (!json_is_object(object))
        return refuse_key(r, "nvml", "is not an object");
    json_object_foreach(object, key, v)
    {
        const struct field *f = find_field(nvml_fields, key);
        const int err = f ? read_field(r, f, v) : refuse_key(r, key, "is not a key of \"nvml\"");

        if (err)
            return err;
    }
    return 0;
}

/* The number of an attribute, given its name in cuda.h in lower case and without the common prefix;
 * 0 if there is none. */
static unsigned
find_attribute_by_name(const char *key)
{
    char name[128] = ATTRIBUTE_PREFIX;
    size_t n = strlen(name);

    for (; *key && n + 1 < sizeof name; key++)
        name[n++] = (char)toupper((unsigned char)*key);
    name[n] = '\0';

    const struct hed_enum *e =
        hed_enums_find(hed_cuda_enums, hed_cuda_enum_count, "CUdevice_attribute");
    const struct hed_enum_value *v = e && !*key ? hed_enum_find_name(e, name) : NULL;

    return v && v->value > 0 && v->value < CU_DEVICE_ATTRIBUTE_MAX &&
                   v->value < HED_PROFILE_ATTRIBUTES
               ? (unsigned)v->value
               : 0;
}

static int
read_attributes(const struct reading *r, json_t *object)
{
    const char *key;
    json_t *v;

    if (!json_is_object(object))
        return refuse_key(r, "attributes", "is not an object");
    json_object_foreach(object, key, v)
    {
        const unsigned attribute = find_attribute_by_name(key);

        if (!attribute)
            return refuse_key(r, key, "is not a device attribute");
        /* null: the device does not have the attribute, whatever the base says. */
        if (json_is_null(v)) {
            r->p->has_attribute[attribute / 64] &= ~(1ull << attribute % 64);
            continue;
        }
        if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN ||
            json_integer_value(v) > INT32_MAX)
            return refuse_key(r, key, "is not a number that fits");
        set_attribute(r->p, attribute, (int)json_integer_value(v));
    }
    return 0;
}

/* "8.9" */
static int
read_capability(const struct reading *r, const json_t *v)
{
    const char *text = json_string_value(v);
    char end;
    int major;
    int minor;

    if (!text || strlen(text) > 4 || !isdigit((unsigned char)*text) ||
        sscanf(text, "%d.%d%c", &major, &minor, &end) != 2 || major < 5 || minor < 0 || minor > 9)
        return refuse_key(r, "compute_capability", "is not text such as \"8.9\"");
    r->p->major = major;
    r->p->minor = minor;
    return 0;
}

static int
read_top(const struct reading *r, json_t *root)
{
    const char *key;
    json_t *v;

    json_object_foreach(root, key, v)
    {
        const struct field *f = find_field(top_fields, key);
        int err = 0;

        if (f)
            err = read_field(r, f, v);
        else if (strcmp(key, "compute_capability") == 0)
            err = read_capability(r, v);
        else if (strcmp(key, "attributes") == 0)
            err = read_attributes(r, v);
        else if (strcmp(key, "nvml") == 0)
            err = read_nvml(r, v);
        else if (strcmp(key, "base") != 0 && strcmp(key, "comment") != 0)
            err = refuse_key(r, key, "is not a key of a profile");
        if (err)
            return err;
    }
    return 0;
}

int
hed_profile_parse(struct hed_profile *p, const char *text, size_t size, const char *label,
                  hed_profile_base_fn base, void *arg, struct hed_why *why)
{
    const struct reading r = {p, label, why};
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    int err = 0;

    if (!root) {
        hed_why_set(why, "%s:%d:%d: %s", label, error.line, error.column, error.text);
        return HED_EFORMAT;
    }
    if (!json_is_object(root)) {
        err = refuse_key(&r, "it", "is not an object");
        goto out;
    }

    const json_t *named = json_object_get(root, "base");

    if (named && !json_is_string(named))
        err = refuse_key(&r, "base", "is not text");
    else if (named)
        err = base(arg, json_string_value(named), p, why);
    if (!err)
        err = read_top(&r, root);
out:
    json_decref(root);
    return err;
}

#else

int
hed_profile_parse(struct hed_profile *p, const char *text, size_t size, const char *label,
                  hed_profile_base_fn base, void *arg, struct hed_why *why)
{
    hed_why_set(why, "%s: this heddle was built without jansson, and cannot read profiles", label);
    return HED_ENOTSUP;
}

#endif

/* Attributes that the driver computes with: a profile must not make it divide by zero. */
static const struct {
    CUdevice_attribute attribute;
    int low, high;
} needed[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 32, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 1, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 1, INT32_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 1, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 1, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 1024, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1024, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 1024, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 1024, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 1024, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1, 4096},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 32, 4096},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 1, 64},
};

/* Derives an attribute from other fields unless the file sets it. */
static void
complete_attribute(struct hed_profile *p, CUdevice_attribute attribute, uint32_t value)
{
    if (!hed_profile_has(p, attribute))
        set_attribute(p, attribute, (int)value);
}

int
hed_profile_check(struct hed_profile *p, const char *label, struct hed_why *why)
{
    if (!p->name[0] || p->major == 0 || p->memory < 1 << 20 || p->memory > 1ull << 43) {
        hed_why_set(why, "%s: %s", label,
                    !p->name[0]     ? "it has no name"
                    : p->major == 0 ? "it has no compute capability"
                                    : "its memory is not between 1M and 8T");
        return HED_EFORMAT;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const unsigned a = needed[i].attribute;

        if (!hed_profile_has(p, a) || p->attributes[a] < needed[i].low ||
            p->attributes[a] > needed[i].high) {
            hed_why_set(why, "%s: device attribute %u is missing or not between %d and %d", label,
                        a, needed[i].low, needed[i].high);
            return HED_EFORMAT;
        }
    }
    set_attribute(p, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, p->major);
    set_attribute(p, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, p->minor);
    complete_attribute(p, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, p->clock_sm * 1000);
    complete_attribute(p, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, p->clock_memory * 1000);
    complete_attribute(p, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, p->pci_device_id);
    complete_attribute(p, CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, p->pci_subsystem_id);
    return 0;
}
