/* A guest that means harm. It is root there, so it has all of the window and all of vsock.
 *
 *     hostile scribble SEED           writes random words all over the window, until it is killed
 *     hostile flip SEED               the same, but changes single bits of what is there
 *     hostile connect SEED COUNT      COUNT connections to the server, with nothing, with garbage,
 *                                     and with a good beginning and garbage after it
 *
 * Says "here" when it has begun, and "done" at the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#define SERVER_PORT 7717
#define OPEN_AT_ONCE 64

static uint64_t chance;

static uint64_t
random_word(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static _Noreturn void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void
say(const char *what)
{
    puts(what);
    fflush(stdout);
}

/* ---- the window ------------------------------------------------------------------------------ */

static bool
file_says(const char *folder, const char *name, const char *value)
{
    char path[512], text[16] = "";

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);

    const int fd = open(path, O_RDONLY);

    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return strncmp(text, value, strlen(value)) == 0;
}

static volatile uint64_t *
map_window(uint64_t *words)
{
    DIR *all = opendir("/sys/bus/pci/devices");
    const struct dirent *e;

    while (all && (e = readdir(all))) {
        char folder[300], path[400];
        struct stat st;

        (void)snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s", e->d_name);
        if (!file_says(folder, "vendor", "0x1af4") || !file_says(folder, "device", "0x1110"))
            continue;
        (void)snprintf(path, sizeof path, "%s/resource2", folder);

        const int fd = open(path, O_RDWR);

        if (fd < 0 || fstat(fd, &st) != 0)
            die(path);

        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
            die("mmap");
        *words = (uint64_t)st.st_size / sizeof(uint64_t);
        return p;
    }
    errno = ENODEV;
    die("the window");
}

/* What is in use lies at the beginning: half of the words are written there. */
static _Noreturn void
scribble(bool flip)
{
    uint64_t words;
    volatile uint64_t *window = map_window(&words);
    const uint64_t front = words < (UINT64_C(1) << 20) ? words : UINT64_C(1) << 20;

    say("here");
    for (;;) {
        const uint64_t i = random_word() % (random_word() & 1 ? front : words);

        if (flip)
            window[i] ^= UINT64_C(1) << (random_word() & 63);
        else
            window[i] = random_word();
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static int
connect_to_host(unsigned port)
{
    const struct sockaddr_vm host = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = port};
    const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("vsock");
    if (connect(fd, (const struct sockaddr *)&host, sizeof host) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
send_garbage(int fd)
{
    union {
        uint64_t words[1024];
        char bytes[8192];
    } data;
    const uint64_t kind = random_word() % 4;
    size_t size = random_word() % sizeof data;

    for (size_t i = 0; i < sizeof data.words / sizeof data.words[0]; i++)
        data.words[i] = random_word();
    if (kind == 0)
        return;
    if (kind > 1) { /* a new client, or a channel of a session that does not exist */
        const uint32_t what = (uint32_t)(random_word() % 4);

        memcpy(data.bytes, "HEDDLE1\n", 8);
        memcpy(data.bytes + 8, &what, sizeof what);
        memset(data.bytes + 12, 0, 4);
    }
    if (kind == 3)
        size = 32;
    (void)send(fd, data.bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
connect_often(int count)
{
    int fds[OPEN_AT_ONCE], refused = 0;

    for (int i = 0; i < OPEN_AT_ONCE; i++)
        fds[i] = -1;
    say("here");
    for (int i = 0; i < count; i++) {
        int *slot = &fds[random_word() % OPEN_AT_ONCE];

        if (*slot >= 0)
            close(*slot);
        *slot = connect_to_host(random_word() % 8 ? SERVER_PORT : (unsigned)random_word());
        if (*slot >= 0)
            send_garbage(*slot);
        else
            refused++;
    }
    printf("%d of %d refused\n", refused, count);
    say("done"); /* the rest ends with us */
}

int
main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    chance = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 2 + 1;
    if (strcmp(what, "scribble") == 0 || strcmp(what, "flip") == 0)
        scribble(strcmp(what, "flip") == 0);
    if (strcmp(what, "connect") != 0 || argc != 4)
        return 2;
    connect_often((int)strtol(argv[3], NULL, 10));
    return 0;
}
