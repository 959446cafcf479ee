/* Asks a program for something, as the heddle command does, for tests.
 *
 *     snap_ask PID REQUEST [-a ADDRESS] [-f FILE]... [-p] [-v] [-d MS]
 *     snap_ask FILE complete      writes the second half of a snapshot: nothing
 *
 * REQUEST: info, capture, ... -f: descriptors, in this order; a file that is not there is made. -p:
 * those after the first are a parent and its homes. -v: verify. Prints the last answer as one line
 * of words; the status is 0, or 1 with the reason.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "move/file/files.h"
#include "move/file/writer.h"
#include "move/talk/talk.h"

static unsigned
kind_of(const char *name)
{
    for (unsigned i = 1; i <= HED_TALK_KIND_LAST; i++)
        if (strcmp(hed_talk_kind_name(i), name) == 0)
            return i;
    fprintf(stderr, "no request is called %s\n", name);
    exit(2);
}

static int
complete_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct hed_snap_writer *w = NULL;
    struct hed_why why = {""};
    int err = hed_snap_writer_append(&hed_snap_files_real, fd, NULL, NULL, &w, &why);

    if (!err)
        err = hed_snap_writer_finish(w, &why);
    hed_snap_writer_free(w);
    if (err)
        printf("error %d: %s\n", err, why.text);
    return err != 0;
}

int
main(int argc, char **argv)
{
    struct hed_talk_request q;
    struct hed_talk_answer a = {.stall_ns = 0};
    struct hed_why why = {""};
    int fds[HED_TALK_FDS_MAX];
    size_t count = 0;
    int c, err;

    if (argc < 3)
        return 2;
    if (strcmp(argv[2], "complete") == 0)
        return complete_file(argv[1]);
    hed_talk_ask(&q, (enum hed_talk_kind)kind_of(argv[2]));
    optind = 3;
    while ((c = getopt(argc, argv, "a:f:pvd:")) != -1)
        if (c == 'a')
            (void)snprintf(q.address, sizeof q.address, "%s", optarg);
        else if (c == 'f' && count < HED_TALK_FDS_MAX)
            fds[count++] = open(optarg, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        else if (c == 'd')
            q.deadline_ms = (uint32_t)strtoul(optarg, NULL, 10);
        else
            q.flags |= c == 'p' ? HED_TALK_PARENT : HED_TALK_VERIFY;
    err = hed_talk_call((pid_t)strtol(argv[1], NULL, 10), &q, fds, count, 600000, &a, &why);
    if (err) {
        printf("error %d: %s (stalled for %llu us)\n", err, why.text,
               (unsigned long long)a.stall_ns / 1000);
        return 1;
    }
    printf("state=%s bytes=%llu written=%llu same=%llu hold_us=%llu stall_us=%llu total_us=%llu "
           "rounds=%u last=%llu host=%llu",
           hed_talk_state_name(a.state), (unsigned long long)a.device_bytes,
           (unsigned long long)a.written, (unsigned long long)a.same,
           (unsigned long long)a.hold_ns / 1000, (unsigned long long)a.stall_ns / 1000,
           (unsigned long long)a.total_ns / 1000, a.rounds, (unsigned long long)a.last_round,
           (unsigned long long)a.host_bytes);
    for (unsigned i = 0; i < HED_TALK_PARTS && a.kind == HED_TALK_MOVE; i++)
        printf(" %s_us=%llu", hed_talk_part_name(i), (unsigned long long)a.parts_ns[i] / 1000);
    printf("\n");
    return 0;
}
