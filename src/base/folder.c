/* Folders of the user. See folder.h. */
#include "base/folder.h"

#include <stdio.h>
#include <stdlib.h>

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
