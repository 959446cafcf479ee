/* Finding and checking the program to run. See target.h. */
#include "cli/target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/cli.h"
#include "locate/elf.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* 0, or the errno that executing the file would give. */
static int
check_executable(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static int
refuse_program(const char *name, int error)
{
    if (error == ENOENT || error == ENOTDIR) {
        hed_cli_say("run: there is no program '%s'%s", name,
                    strchr(name, '/') ? "" : " in PATH; for one in this folder, write ./NAME");
        return HED_EXIT_MISSING;
    }
    if (error == EISDIR)
        hed_cli_say("run: cannot execute '%s': it is a folder", name);
    else if (error == EACCES)
        hed_cli_say("run: cannot execute '%s': permission denied; see chmod +x", name);
    else
        hed_cli_say("run: cannot execute '%s': %s", name, strerror(error));
    return HED_EXIT_NOEXEC;
}

/* Tries one entry of PATH; an empty one is the current folder. */
static bool
try_folder(struct hed_target *t, const char *folder, size_t n, const char *name, int *error)
{
    const int size =
        snprintf(t->path, sizeof t->path, "%.*s/%s", n ? (int)n : 1, n ? folder : ".", name);

    if (size < 0 || (size_t)size >= sizeof t->path)
        return false;

    const int e = check_executable(t->path);

    /* A file that exists but cannot be run is a better reason than none at all. */
    if (e == EACCES)
        *error = EACCES;
    return e == 0;
}

int
hed_target_find(struct hed_target *t, const char *name, const char *search)
{
    int error = ENOENT;

    if (name[0] == '\0')
        return refuse_program("", ENOENT);
    if (strchr(name, '/')) {
        if ((size_t)snprintf(t->path, sizeof t->path, "%s", name) >= sizeof t->path)
            return refuse_program(name, ENAMETOOLONG);
        error = check_executable(t->path);
        return error ? refuse_program(name, error) : 0;
    }
    for (const char *p = search ? search : DEFAULT_PATH; p;) {
        const size_t n = strcspn(p, ":");

        if (try_folder(t, p, n, name, &error))
            return 0;
        p = p[n] ? p + n + 1 : NULL;
    }
    return refuse_program(name, error);
}

/* Does the kernel give this program rights that its caller does not have? Then the loader ignores
 * LD_PRELOAD and LD_LIBRARY_PATH. */
static bool
gains_rights(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
           ((st.st_mode & S_ISGID) && st.st_gid != getgid()) ||
           (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

void
hed_target_warn(const struct hed_target *t, bool inject)
{
    struct hed_elf elf;

    if (gains_rights(t->path)) {
        hed_cli_say("warning: heddle has no effect on '%s', which is setuid, setgid or has "
                    "capabilities",
                    t->path);
        return;
    }
    /* A script is run by an interpreter, which is most likely dynamically linked. */
    if (hed_elf_read(t->path, &elf) != 0 || !elf.is_elf)
        return;
    if (!hed_elf_is_native(&elf))
        hed_cli_say("warning: heddle has no effect on '%s', which was built for %s", t->path,
                    elf.is_64 ? hed_elf_machine_name(elf.machine) : "a 32-bit machine");
    /* The dynamic loader, when it is the program, has no interpreter either. */
    else if (!inject && !elf.has_interp && strncmp(elf.soname, "ld", 2) != 0)
        hed_cli_say(
            "warning: heddle has no effect on '%s', which is statically linked; try --inject",
            t->path);
}
