/* The worker's own user, and no way to become another or to be traced. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/steps.h"

int
hed_step_user(const struct hed_sandbox *s, struct hed_why *why)
{
    if (s->uid == 0 || s->gid == 0)
        return -EINVAL;
    if (setgroups(0, NULL) != 0 || setresgid(s->gid, s->gid, s->gid) != 0 ||
        setresuid(s->uid, s->uid, s->uid) != 0) {
        const int error = errno;

        if (error == EINVAL)
            hed_why_set(why,
                        "there is no user %u here, as in a container that has few users; "
                        "choose other numbers with --worker-uids",
                        s->uid);
        return -error;
    }
    /* The server's libraries are loaded later, by this user. */
    if (access(s->libraries, R_OK | X_OK) != 0) {
        hed_why_set(why, "user %u cannot read %.180s; let all users read it", s->uid, s->libraries);
        return -EACCES;
    }
    return 0;
}

static int
drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

    memset(none, 0, sizeof none);
    /* Only what has capabilities may drop them from the bounding set; without the right to gain
     * any, the set has no meaning. */
    for (int i = 0; i <= CAP_LAST_CAP; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 ? 0 : -errno;
}

int
hed_step_privileges(const struct hed_sandbox *s, struct hed_why *why)
{
    const int err = drop_capabilities();

    if (err)
        return err;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return -errno;
    /* A change of user has cleared it. The caller has to look whether its parent died meanwhile. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 ? 0 : -errno;
}
