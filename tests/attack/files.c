/* Attacks on files. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack/attack.h"

static bool
can_open(const char *path, int flags)
{
    char byte;
    const int fd = open(path, flags | O_CLOEXEC, 0600);

    return fd >= 0 && ((flags & O_ACCMODE) != O_RDONLY || read(fd, &byte, 1) == 1);
}

static const char *
in_folder(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", target.folder, name);
    return path;
}

static bool
reads_passwd(void)
{
    return can_open("/etc/passwd", O_RDONLY);
}

static bool
reads_key(void)
{
    return can_open(target.key, O_RDONLY);
}

static bool
reads_key_by_detour(void)
{
    char path[256];

    (void)snprintf(path, sizeof path, "/proc/self/root%s", target.key);
    return can_open(path, O_RDONLY);
}

static bool
reads_other_client(void)
{
    return can_open(target.other, O_RDONLY);
}

static bool
writes_other_client(void)
{
    return can_open(target.other, O_WRONLY);
}

static bool
makes_file(void)
{
    return can_open(in_folder("made"), O_WRONLY | O_CREAT);
}

static bool
makes_file_in_tmp(void)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/tmp/hedattack%d", (int)getpid());

    const bool made = can_open(path, O_WRONLY | O_CREAT);

    (void)unlink(path);
    return made;
}

static bool
makes_shared_memory(void)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/dev/shm/hedattack%d", (int)getpid());

    const bool made = can_open(path, O_RDWR | O_CREAT);

    (void)unlink(path);
    return made;
}

static bool
makes_link(void)
{
    return symlink("/etc/passwd", in_folder("link")) == 0;
}

static bool
makes_folder(void)
{
    return mkdir(in_folder("new"), 0700) == 0;
}

static bool
removes_key(void)
{
    return unlink(target.key) == 0;
}

static bool
renames_key(void)
{
    return rename(target.key, in_folder("taken")) == 0;
}

static bool
empties_key(void)
{
    return truncate(target.key, 0) == 0;
}

static bool
opens_key_to_all(void)
{
    return chmod(target.key, 0644) == 0;
}

static bool
lists_root(void)
{
    char entries[512];
    const int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && syscall(SYS_getdents64, fd, entries, sizeof entries) > 0;
}

static bool
loads_library(void)
{
    return dlopen(target.library, RTLD_NOW) != NULL;
}

static bool
writes_own_library(void)
{
    /* Root's libraries; for others, this fails without a sandbox, too. */
    return can_open("/usr/lib/hedattack", O_WRONLY | O_CREAT) && unlink("/usr/lib/hedattack") == 0;
}

static bool
sees_key(void)
{
    struct stat st;

    return stat(target.key, &st) == 0;
}

static bool
sees_key_from_own_folder(void)
{
    struct stat st;

    return fstatat(target.own, "../server.key", &st, 0) == 0;
}

static bool
sees_key_by_descriptor(void)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/../server.key", target.own);
    return access(path, F_OK) == 0;
}

static bool
finds_out_about_passwd(void)
{
    return access("/etc/passwd", F_OK) == 0 || access("/proc/self/root/etc/passwd", F_OK) == 0 ||
           access("/proc/self/cwd/etc/passwd", F_OK) == 0;
}

static bool
reads_where_link_leads(void)
{
    char where[64];

    return readlink(target.link, where, sizeof where) > 0;
}

static bool
sees_other_process(void)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/%d", (int)target.listener);
    return stat(path, &st) == 0;
}

static bool
sees_file_system(void)
{
    struct statvfs st;

    return statvfs(target.folder, &st) == 0;
}

const struct attack file_attacks[] = {
    {"reads_passwd", reads_passwd, ANYBODY, true},
    {"reads_key", reads_key, ANYBODY, true},
    {"reads_key_by_detour", reads_key_by_detour, ANYBODY, true},
    {"reads_other_client", reads_other_client, ANYBODY, true},
    {"writes_other_client", writes_other_client, ANYBODY, true},
    {"makes_file", makes_file, ANYBODY, true},
    {"makes_file_in_tmp", makes_file_in_tmp, ANYBODY, true},
    {"makes_shared_memory", makes_shared_memory, ANYBODY, true},
    {"makes_link", makes_link, ANYBODY, true},
    {"makes_folder", makes_folder, ANYBODY, true},
    {"removes_key", removes_key, ANYBODY, true},
    {"renames_key", renames_key, ANYBODY, true},
    {"empties_key", empties_key, ANYBODY, true},
    {"opens_key_to_all", opens_key_to_all, ANYBODY, false},
    {"lists_root", lists_root, ANYBODY, true},
    {"loads_library", loads_library, ANYBODY, true},
    {"writes_own_library", writes_own_library, ROOT, true},
    {"sees_key", sees_key, ROOTED, true},
    {"sees_key_from_own_folder", sees_key_from_own_folder, ROOTED, true},
    {"sees_key_by_descriptor", sees_key_by_descriptor, ROOTED, true},
    {"finds_out_about_passwd", finds_out_about_passwd, ROOTED, true},
    {"reads_where_link_leads", reads_where_link_leads, ROOTED, true},
    {"sees_other_process", sees_other_process, ROOTED, true},
    {"sees_file_system", sees_file_system, ROOTED, true},
    {0},
};
