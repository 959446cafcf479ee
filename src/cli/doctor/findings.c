/* The list of findings, to which every check adds. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor/doctor.h"

void
hed_doctor_say(struct hed_doctor *d, enum hed_finding_level level, const char *name,
               const char *fmt, ...)
{
    va_list args;

    if (d->count >= HED_FINDINGS_MAX)
        return;

    struct hed_finding *f = &d->findings[d->count++];

    f->level = level;
    f->hint[0] = '\0';
    snprintf(f->name, sizeof f->name, "%s", name);
    va_start(args, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
}

void
hed_doctor_hint(struct hed_doctor *d, const char *fmt, ...)
{
    va_list args;

    if (d->count == 0)
        return;
    va_start(args, fmt);
    vsnprintf(d->findings[d->count - 1].hint, sizeof d->findings[0].hint, fmt, args);
    va_end(args);
}
