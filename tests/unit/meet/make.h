/* What the tests of meet/ share: a file of their own, joining it, and children that are killed. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/meeting.h"
#include "harness/unit.h"
#include "share/meet/meet.h"

static const struct hed_meet_shape meet_shape = {0x51544d31, 256, 128, 80};

static char meet_name[64];
static char meet_path[HED_MEETING_PATH_MAX + 64];

static inline int
setup(void **state)
{
    (void)snprintf(meet_name, sizeof meet_name, "test-meet-%ld", (long)getpid());
    struct hed_meeting_folders folders;
    struct hed_why why;

    if (hed_meeting_open(true, &folders, &why) != 0)
        fail_msg("%s", why.text);
    (void)snprintf(meet_path, sizeof meet_path, "%s/%s", folders.at[0].path, meet_name);
    hed_meeting_close(&folders);
    (void)unlink(meet_path);
    return 0;
}

static inline int
teardown(void **state)
{
    (void)unlink(meet_path);
    return 0;
}

static inline struct hed_meet *
join_meeting(void)
{
    struct hed_meet *m = NULL;
    struct hed_why why = {""};

    if (hed_meet_join(meet_name, &meet_shape, &m, &why) != 0)
        fail_msg("%s", why.text);
    return m;
}

static inline uint32_t
count_people(struct hed_meet *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < meet_shape.slots; i++)
        n += hed_meet_taken(m, i, NULL);
    return n;
}

static inline void
wait_for(int fd, int n)
{
    char c;

    for (int i = 0; i < n; i++) {
        assert_int_equal(read(fd, &c, 1), 1);
        assert_int_equal(c, 'y');
    }
}

static inline void
end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The descriptor has the lock until it is closed. */
static inline int
lock_from_outside(off_t at)
{
    const int fd = open(meet_path, O_RDWR);
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    assert_int_equal(fcntl(fd, F_OFD_SETLK, &f), 0);
    return fd;
}
