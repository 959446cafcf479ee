/* Dying at a certain message, for tests. See dies.h. A process counts one kind of message only. */
#include "remote/wire/dies.h"

#ifdef HED_DEBUG

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *name;
static _Atomic long left; /* messages; negative for never */

static void
read_count(void)
{
    const char *text = secure_getenv(name);
    char line[32] = "";
    FILE *f = text && text[0] == '/' ? fopen(text, "re") : NULL;

    if (f) {
        if (!fgets(line, sizeof line, f))
            line[0] = '\0';
        (void)fclose(f);
        text = line;
    }
    atomic_store(&left, text ? strtol(text, NULL, 10) - 1 : -1);
}

void
hed_dies_count(const char *variable)
{
    name = variable;
    (void)pthread_once(&once, read_count);
    if (atomic_load(&left) >= 0 && atomic_fetch_sub(&left, 1) == 0)
        (void)raise(SIGKILL);
}

#else
typedef int hed_dies_nothing; /* a file must not be empty */
#endif
