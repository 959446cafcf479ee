/* Folders of the user, and full paths. See folder.h. */
#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

bool
hed_cache_folder(const char *what, char *out, size_t size)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int n = -1;

    if (cache && cache[0] == '/')
        n = snprintf(out, size, "%s/heddle/%s", cache, what);
    else if (home && home[0] == '/')
        n = snprintf(out, size, "%s/.cache/heddle/%s", home, what);
    if (n > 0 && (size_t)n < size)
        return true;
    out[0] = '\0';
    return false;
}

int
hed_path_absolute(const char *path, char *out, size_t size, struct hed_why *why)
{
    char here[PATH_MAX] = "";

    if (path[0] != '/' && !getcwd(here, sizeof here)) {
        hed_why_set(why, "cannot find out the current folder: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }

    const int n = snprintf(out, size, "%s%s%s", here, here[0] ? "/" : "", path);

    if (n < 0 || (size_t)n >= size) {
        hed_why_set(why, "'%.200s...' is too long for a path", path);
        return HED_ELIMIT;
    }
    return 0;
}
