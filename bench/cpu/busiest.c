/* The CPU time of the busiest thread of this process. On a busy machine the clock says little about
 * how work scales; how evenly it is spread over threads can still be measured. */
#include "busiest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 512 };

struct thread_time {
    int id;
    double seconds;
};

static struct thread_time before[MAX_THREADS];
static int before_count;

static double
cpu_of_thread(int id)
{
    char path[64];
    unsigned long long ns = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", id);

    FILE *f = fopen(path, "r");

    if (f) {
        if (fscanf(f, "%llu", &ns) != 1)
            ns = 0;
        fclose(f);
    }
    return (double)ns * 1e-9;
}

static int
list_threads(struct thread_time *t)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    for (struct dirent *e; d && n < MAX_THREADS && (e = readdir(d));) {
        const int id = (int)strtol(e->d_name, NULL, 10);

        if (id > 0)
            t[n++] = (struct thread_time){id, cpu_of_thread(id)};
    }
    if (d)
        closedir(d);
    return n;
}

void
busiest_begin(void)
{
    before_count = list_threads(before);
}

double
busiest_seconds(void)
{
    static struct thread_time now[MAX_THREADS];
    const int n = list_threads(now);
    double most = 0;

    for (int i = 0; i < n; i++) {
        double took = now[i].seconds;

        for (int j = 0; j < before_count; j++)
            took -= before[j].id == now[i].id ? before[j].seconds : 0;
        most = took > most ? took : most;
    }
    return most;
}
