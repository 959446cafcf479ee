/* A profiler's injection library, for tests: writes the ranges that it sees to $HED_NVTX_LOG.
 *
 *     PID TID + DOMAIN: TEXT      PID TID - DOMAIN
 *
 * $HED_NVTX_MODE: "plain" knows no domains, "none" sets no functions, "refuse" fails to start,
 * "ask" calls back while it starts, "slow" takes a while to start, "lag" takes a while to end the
 * ranges of all threads but the first. Uses heddle's files only for "ask". */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CORE 1
#define CORE2 5

typedef void (*function)(void);

struct callbacks {
    size_t size;
    int (*get)(int module, function ***functions, unsigned *count);
};

struct event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

/* One write for each line, because threads and processes share the file. */
static void
write_line(const char *what, const char *domain, const char *text)
{
    const char *path = getenv("HED_NVTX_LOG");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    char line[256];

    (void)snprintf(line, sizeof line, "%d %ld %s %s%s%s\n", (int)getpid(), syscall(SYS_gettid),
                   what, domain, *text ? ": " : "", text);
    if (fd < 0 || write(fd, line, strlen(line)) < 0)
        (void)fputs("nvtx_tool: cannot write\n", stderr);
    if (fd >= 0)
        (void)close(fd);
}

static int
plain_push(const char *text)
{
    write_line("+", "default", text);
    return 0;
}

static int
plain_pop(void)
{
    write_line("-", "default", "");
    return 0;
}

static int
domain_push(void *domain, const struct event *e)
{
    const int sound = e->version == 3 && e->size == sizeof *e && e->message_type == 1;

    write_line("+", domain, sound ? e->message : "an event that makes no sense");
    return 0;
}

static int
domain_pop(void *domain)
{
    const char *mode = getenv("HED_NVTX_MODE");

    if (mode && strcmp(mode, "lag") == 0 && syscall(SYS_gettid) != getpid())
        (void)usleep(50000);
    write_line("-", domain, "");
    return 0;
}

static void *
create_domain(const char *name)
{
    return strdup(name);
}

/* Asks heddle while the library is being loaded. */
static void
ask_heddle(void)
{
    void (*push)(const char *);
    void (*pop)(void);

    *(void **)&push = dlsym(RTLD_DEFAULT, "heddle_range_push");
    *(void **)&pop = dlsym(RTLD_DEFAULT, "heddle_range_pop");
    if (push && pop) {
        push("too early");
        pop();
        write_line("!", "asked", "");
    }
}

int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const struct callbacks *c = get_table(1);
    const char *mode = getenv("HED_NVTX_MODE");
    function **core, **core2;
    unsigned n, n2;

    mode = mode ? mode : "";
    if (strcmp(mode, "refuse") == 0 || !c || c->size < sizeof *c || get_table(99) ||
        c->get(0, &core, &n) || c->get(99, &core, &n) || !c->get(CORE, &core, &n) || n < 12 ||
        !c->get(CORE2, &core2, &n2) || n2 < 13 || core[0] || core[n] || core2[0] || core2[n2])
        return 0;
    for (int m = 1; m <= 6; m++)
        if (!c->get(m, &core, &n) || !core[1] || !core[n - 1] || core[n])
            return 0;
    (void)c->get(CORE, &core, NULL);
    if (strcmp(mode, "none") == 0)
        return 1;
    if (strcmp(mode, "ask") == 0)
        ask_heddle();
    if (strcmp(mode, "slow") == 0)
        (void)usleep(50000);
    *core[9] = (function)plain_push;
    *core[11] = (function)plain_pop;
    if (strcmp(mode, "plain") != 0) {
        *core2[12] = (function)create_domain;
        *core2[4] = (function)domain_push;
        *core2[5] = (function)domain_pop;
    }
    return 1;
}
