/* Loading the plug-ins of core/plugin.h. */
#include "core/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "core/layer.h"

int
hed_plugin_folder(char *out, size_t size)
{
    char path[PATH_MAX];
    struct link_map *map = NULL;
    Dl_info info;

    /* Any address of ours will do. */
    if (!dladdr1((const void *)&hed_cuda_forward, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return HED_ENOTFOUND;
    /* A library has the name by which it was loaded, of which links are followed. A program, such
     * as the heddle command, has none; argv[0] would only do if it had a slash. */
    if (!realpath(map->l_name[0] ? map->l_name : "/proc/self/exe", path))
        return HED_ENOTFOUND;

    char *slash = strrchr(path, '/');

    if (!slash)
        return HED_ENOTFOUND;
    *slash = '\0';
    return hed_str_copy(out, size, path) ? 0 : HED_ELIMIT;
}

/* The type in a loaded plug-in. */
static int
find_plugin_type(void *library, const char *path, const struct hed_layer_type **out,
                 struct hed_why *why)
{
    const char *version = dlsym(library, HED_PLUGIN_VERSION);
    const struct hed_layer_type *(*type)(void);

    /* ISO C has no conversion between objects and functions; POSIX has. */
    *(void **)&type = dlsym(library, HED_PLUGIN_TYPE);
    if (!version || !type) {
        hed_why_set(why, "%s is not a plug-in of heddle; install heddle again", path);
        return HED_EINVAL;
    }
    if (strncmp(version, HED_VERSION, sizeof HED_VERSION) != 0) {
        hed_why_set(why, "%s has version %.32s, but heddle has %s; install heddle again", path,
                    version, HED_VERSION);
        return HED_EVERSION;
    }
    *out = type();
    return 0;
}

int
hed_plugin_open(const char *kind, const char *name, const struct hed_layer_type **out,
                struct hed_why *why)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    int err = hed_plugin_folder(folder, sizeof folder);

    if (err) {
        hed_why_set(why, "cannot find out where heddle's libraries are: %s", hed_err_text(err));
        return err;
    }
    (void)snprintf(path, sizeof path, "%s/%.16s-%.32s.so", folder, kind, name);
    if (access(path, F_OK) != 0) {
        hed_why_set(why, "there is no %s: this heddle was built without the %s '%s'%s", path, kind,
                    name,
                    strcmp(name, "cpu") == 0 ? "; install libjansson-dev and build it again" : "");
        return HED_ENOTFOUND;
    }

    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        const char *text = dlerror();

        hed_why_set(why, "cannot load %s: %s", path, text ? text : "the loader does not say why");
        return HED_EINVAL;
    }
    /* Even if it is refused it stays loaded, because its constructors may have left something. */
    return find_plugin_type(library, path, out, why);
}
