/* The host's end of a guest's streams: threads that read and write what the guest expects. See
 * guest.h.
 */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/vm/guest.h"
#include "unit/vm/must.h"

static void *
run_read(void *arg)
{
    const struct host_task *t = arg;
    static _Thread_local uint8_t bytes[100000];

    for (uint64_t done = 0; done < t->bytes;) {
        const uint64_t left = t->bytes - done;
        const ssize_t n = read(t->fd, bytes, left < sizeof bytes ? left : sizeof bytes);

        must(n > 0);
        for (ssize_t i = 0; i < n; i++)
            must(bytes[i] == guest_pattern(t->port, t->from + done + (uint64_t)i));
        done += (uint64_t)n;
    }
    return NULL;
}

static void *
run_write(void *arg)
{
    const struct host_task *t = arg;
    static _Thread_local uint8_t bytes[100000];

    for (uint64_t done = 0; done < t->bytes;) {
        const uint64_t left = t->bytes - done;
        const size_t n = left < sizeof bytes ? left : sizeof bytes;

        for (size_t i = 0; i < n; i++)
            bytes[i] = guest_pattern(t->port, t->from + done + i);

        const ssize_t sent = send(t->fd, bytes, n, MSG_NOSIGNAL);

        must(sent > 0);
        done += (uint64_t)sent;
    }
    return NULL;
}

void
host_read(struct host_task *t, int fd, uint32_t port, uint64_t from, uint64_t bytes)
{
    *t = (struct host_task){.fd = fd, .port = port, .from = from, .bytes = bytes};
    must(pthread_create(&t->thread, NULL, run_read, t) == 0);
}

void
host_write(struct host_task *t, int fd, uint32_t port, uint64_t from, uint64_t bytes)
{
    *t = (struct host_task){.fd = fd, .port = port, .from = from, .bytes = bytes};
    must(pthread_create(&t->thread, NULL, run_write, t) == 0);
}

void
host_wait(struct host_task *t)
{
    must(pthread_join(t->thread, NULL) == 0);
}
