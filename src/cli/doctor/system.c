/* The doctor checks the machine: kernel, C library, shared memory, folder for temporary files. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define SHM_LOW (64ull * 1024 * 1024) /* bytes free; Docker's default is this much in all */

static void
check_kernel(struct hed_doctor *d)
{
    struct utsname u;
    int major = 0, minor = 0;

    if (uname(&u) != 0)
        return;
    if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
        (major < 2 || (major == 2 && minor < 17))) {
        hed_doctor_say(d, HED_FINDING_WARN, "system", "glibc %s is older than CUDA needs (2.17)",
                       gnu_get_libc_version());
        hed_doctor_hint(d, "Use a newer system, or a container with one.");
        return;
    }
    hed_doctor_say(d, HED_FINDING_OK, "system", "%s %s, glibc %s, %s", u.sysname, u.release,
                   gnu_get_libc_version(), u.machine);
}

/* Tries to create a file, because only the kernel's answer counts. 0 or an errno. */
static int
try_writing(const char *folder)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/.heddle-XXXXXX", folder);

    const int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return errno;
    close(fd);
    unlink(path);
    return 0;
}

static void
check_shared_memory(struct hed_doctor *d)
{
    const int error = try_writing("/dev/shm");
    struct statvfs fs;

    if (error) {
        hed_doctor_say(d, HED_FINDING_FAIL, "/dev/shm", "cannot be written: %s", strerror(error));
        hed_doctor_hint(d, "Mount a tmpfs there: mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
        return;
    }
    if (statvfs("/dev/shm", &fs) == 0) {
        const unsigned long long space = (unsigned long long)fs.f_bavail * fs.f_frsize;

        if (space < SHM_LOW) {
            hed_doctor_say(d, HED_FINDING_WARN, "/dev/shm", "has only %llu MiB free",
                           space / (1024 * 1024));
            hed_doctor_hint(d, "Make it larger. For a container: docker run --shm-size=1g");
            return;
        }
    }
    hed_doctor_say(d, HED_FINDING_OK, "/dev/shm", "can be written");
}

static void
check_temp(struct hed_doctor *d)
{
    const char *given = getenv("TMPDIR");
    const char *folder = given && given[0] ? given : "/tmp";
    const int error = try_writing(folder);

    if (error) {
        hed_doctor_say(d, HED_FINDING_FAIL, "temp folder", "%s cannot be written: %s", folder,
                       strerror(error));
        hed_doctor_hint(d, "Set TMPDIR to a folder that you can write to.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "temp folder", "%s can be written", folder);
    }
}

void
hed_doctor_system(struct hed_doctor *d)
{
    check_kernel(d);
    check_shared_memory(d);
    check_temp(d);
}
