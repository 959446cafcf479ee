/* A process with all its descendants. See tree.h. */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define TREE_MAX 4096               /* processes; a program with more keeps some */
#define GONE_NS (5 * HED_NS_PER_S)  /* for killed processes to go away */
#define LOOK_NS (2 * HED_NS_PER_MS) /* between two looks */

struct tree {
    pid_t pids[TREE_MAX]; /* the root is the first */
    size_t count;
};

static void
add_to_tree(struct tree *t, pid_t pid)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->pids[i] == pid)
            return;
    if (t->count < TREE_MAX)
        t->pids[t->count++] = pid;
}

static void
add_children_of_thread(struct tree *t, pid_t pid, const char *thread)
{
    char path[64];
    int child;

    if (snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)pid, thread) >=
        (int)sizeof path)
        return;

    FILE *f = fopen(path, "re");

    while (f && fscanf(f, "%d", &child) == 1)
        add_to_tree(t, (pid_t)child);
    if (f)
        fclose(f);
}

static void
add_children(struct tree *t, pid_t pid)
{
    char path[32];
    const struct dirent *e;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);

    DIR *d = opendir(path);

    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            add_children_of_thread(t, pid, e->d_name);
    if (d)
        closedir(d);
}

/* Stops them on the way, so that none starts another one meanwhile. */
static void
stop_tree(struct tree *t)
{
    size_t before;

    do {
        before = t->count;
        for (size_t i = 0; i < t->count; i++) {
            (void)kill(t->pids[i], SIGSTOP);
            add_children(t, t->pids[i]);
        }
    } while (t->count != before);
}

/* Whoever its parent was, it is a child of ours once that is dead (hed_tree_adopt). */
static bool
is_gone(pid_t pid)
{
    (void)waitpid(pid, NULL, WNOHANG);
    return kill(pid, 0) != 0 && errno == ESRCH;
}

void
hed_tree_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void
hed_tree_kill(pid_t pid)
{
    static struct tree t;
    const uint64_t end = hed_now_ns() + GONE_NS;

    t.count = 0;
    add_to_tree(&t, pid);
    stop_tree(&t);
    for (size_t i = 0; i < t.count; i++)
        (void)kill(t.pids[i], SIGKILL);
    for (size_t i = 1; i < t.count; i++)
        while (!is_gone(t.pids[i]) && hed_now_ns() < end)
            hed_sleep_ns(LOOK_NS);
}

bool
hed_tree_is_heddle(pid_t pid)
{
    char path[32];
    char exe[PATH_MAX];

    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);

    const ssize_t n = readlink(path, exe, sizeof exe - 1);

    exe[n > 0 ? n : 0] = '\0';

    const char *slash = strrchr(exe, '/');

    return slash && (strcmp(slash, "/heddle") == 0 || strcmp(slash, "/heddle (deleted)") == 0);
}

size_t
hed_tree_below_heddle(pid_t pid, pid_t out[HED_TREE_FOUND])
{
    static struct tree t;
    size_t count = 0;

    if (!hed_tree_is_heddle(pid))
        return 0;
    t.count = 0;
    add_to_tree(&t, pid);
    for (size_t i = 0; i < t.count && t.count <= HED_TREE_FOUND; i++)
        add_children(&t, t.pids[i]);
    for (size_t i = 1; i < t.count && count < HED_TREE_FOUND; i++)
        out[count++] = t.pids[i];
    return count;
}
