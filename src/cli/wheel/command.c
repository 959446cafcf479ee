/* heddle, as a wheel puts it beside the commands of a Python environment: finds the package that
 * was installed with it, and becomes its command. It has no words of its own.
 *
 * The package is a tree like any other installation, heddle/_native/{bin,lib,share}, so all that
 * the command looks for relative to itself is there. Only pip knows where it puts the package:
 *
 *     ENV/bin/heddle    ENV/lib/python3.11/site-packages/heddle/_native      venv, --user, conda
 *                       ENV/lib64/python3.9/site-packages/heddle/_native     Fedora, RHEL
 *                       ENV/lib/python3/dist-packages/heddle/_native         Debian
 *     DIR/bin/heddle    DIR/heddle/_native                                   pip --target DIR
 *
 * A folder for several versions of Python (~/.local) may have several packages. Each is complete;
 * that of the newest Python is taken.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND "heddle/_native/bin/heddle"
#define EXIT_NOT_FOUND 127

/* The folder above that of this program. */
static bool
find_environment(char *out, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", out, size - 1);

    if (n < 0)
        return false;
    out[n] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(out, '/');

        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

static bool
is_python_folder(const char *name)
{
    return strncmp(name, "python3", strlen("python3")) == 0 ||
           strncmp(name, "pypy3", strlen("pypy3")) == 0;
}

static bool
join_command(char *out, const char *environment, const char *folder)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s/" COMMAND, environment, folder);

    return n > 0 && n < PATH_MAX && access(out, F_OK) == 0;
}

/* Looks below environment/lib, and takes that of the newest Python. */
static bool
find_in_library(char *out, const char *environment, const char *lib)
{
    static const char *const kinds[] = {"site-packages", "dist-packages"};
    char path[PATH_MAX];
    char newest[NAME_MAX + 1] = "";
    const struct dirent *entry;
    const int n = snprintf(path, sizeof path, "%s/%s", environment, lib);
    DIR *dir = n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;

    if (!dir)
        return false;
    while ((entry = readdir(dir)) != NULL) {
        if (!is_python_folder(entry->d_name) || strverscmp(entry->d_name, newest) <= 0)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            char folder[PATH_MAX];
            char found[PATH_MAX];
            const int length =
                snprintf(folder, sizeof folder, "%s/%s/%s", lib, entry->d_name, kinds[i]);

            if (length > 0 && (size_t)length < sizeof folder &&
                join_command(found, environment, folder)) {
                (void)snprintf(newest, sizeof newest, "%s", entry->d_name);
                (void)snprintf(out, PATH_MAX, "%s", found);
            }
        }
    }
    (void)closedir(dir);
    return newest[0] != '\0';
}

int
main(int argc, char **argv)
{
    char environment[PATH_MAX];
    char command[PATH_MAX];

    (void)argc;
    if (!find_environment(environment, sizeof environment)) {
        (void)fprintf(stderr, "heddle: cannot find out where it is installed: /proc/self/exe: %s\n",
                      strerror(errno));
        return EXIT_NOT_FOUND;
    }
    if (!find_in_library(command, environment, "lib") &&
        !find_in_library(command, environment, "lib64") &&
        !join_command(command, environment, ".")) {
        (void)fprintf(stderr,
                      "heddle: the Python package heddle-cuda is not in %s; install it again: "
                      "pip install --force-reinstall heddle-cuda\n",
                      environment[0] ? environment : "/");
        return EXIT_NOT_FOUND;
    }
    (void)execv(command, argv);
    (void)fprintf(stderr, "heddle: %s: %s\n", command, strerror(errno));
    return 126;
}
