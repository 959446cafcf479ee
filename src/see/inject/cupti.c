/* Opening libcupti. See cupti.h. */
#include "see/inject/cupti.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/cupti_files.h"

struct hed_cupti hed_cupti;

static const char *const sonames[] = {HED_CUPTI_SONAMES};
static const char *const folders[] = {HED_CUPTI_FOLDERS};

/* Finds the functions of a library. False if one is missing that is needed. */
static bool
find_functions(void *library, const char **missing)
{
    struct hed_cupti table = {0};

    *missing = NULL;
#define FIND(name, arguments)                        \
    {                                                \
        void *found_ = dlsym(library, #name);        \
                                                     \
        memcpy(&table.name, &found_, sizeof found_); \
    }
    HED_CUPTI_NEEDED(FIND)
    HED_CUPTI_WANTED(FIND)
#define NEED(name, arguments) \
    if (!table.name)          \
        *missing = #name;
    HED_CUPTI_NEEDED(NEED)
    if (*missing)
        return false;
    hed_cupti = table;
    return true;
}

static void *
open_any(void)
{
    const size_t count = sizeof sonames / sizeof *sonames;
    void *library = NULL;
    char path[256];

    /* Two copies in one process disturb each other, and torch's profiler brings one, too. */
    for (size_t i = 0; !library && i < count; i++)
        library = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; !library && i < count; i++)
        library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        for (size_t i = 0; !library && i < count; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", folders[f], sonames[i]);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

int
hed_cupti_open(const char *given, struct hed_why *why)
{
    void *library = *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : open_any();
    const char *missing;
    uint32_t version = 0;

    if (!library && *given) {
        hed_why_set(why, "cannot load CUPTI: %s", dlerror());
        return HED_EINVAL;
    }
    if (!library) {
        hed_why_set(
            why,
            "no libcupti.so.13 or .12 was found; install the CUDA toolkit, or set `cupti` to its "
            "path");
        return HED_ENOTFOUND;
    }
    if (!find_functions(library, &missing)) {
        hed_why_set(why, "this libcupti lacks the function %s; use that of CUDA 12 or 13", missing);
        (void)dlclose(library);
        return HED_EVERSION;
    }
    (void)hed_cupti.cuptiGetVersion(&version);
    hed_info(INJECT, "CUPTI has version %u", version);
    return 0;
}

const char *
hed_cupti_text(int result)
{
    const char *text = NULL;

    if (result == HED_CUPTI_FULL || result == HED_CUPTI_OTHER_PROFILER)
        return "another profiler uses CUPTI in this process";
    if (hed_cupti.cuptiGetResultString(result, &text) != 0 || !text)
        return "an error without a name";
    return text;
}
