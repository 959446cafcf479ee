/* Errors: texts, translation from errno, reasons, bug reports. See err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

const char *
hed_err_text(int err)
{
    switch (err) {
    case 0:
        return "no error";
#define TEXT(name, value, text) \
    case name:                  \
        return text;
        HED_ERR_MAP(TEXT)
#undef TEXT
    default:
        return "unknown error";
    }
}

int
hed_err_from_errno(int e)
{
    switch (e) {
    case 0:
        return 0;
    case ENOMEM:
        return HED_ENOMEM;
    case EINVAL:
    case EFAULT:
    case ENAMETOOLONG:
        return HED_EINVAL;
    case ERANGE:
    case EOVERFLOW:
        return HED_ERANGE;
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
        return HED_ELIMIT;
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
    case ENODEV:
    case ESRCH:
        return HED_ENOTFOUND;
    case EEXIST:
    case EADDRINUSE:
        return HED_EEXIST;
    case EACCES:
    case EPERM:
    case EROFS:
        return HED_EACCESS;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
        return HED_ENOTSUP;
    case EBUSY:
    case EISCONN:
    case ENOTCONN:
        return HED_ESTATE;
    default:
        return HED_EIO;
    }
}

void
hed_why_set(struct hed_why *why, const char *fmt, ...)
{
    const int saved = errno;
    char text[sizeof(why->text)];
    va_list ap;

    if (!why)
        return;

    /* By way of a second buffer, since why->text may be an argument. */
    va_start(ap, fmt);
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
        text[0] = '\0';
    va_end(ap);
    memcpy(why->text, text, strnlen(text, sizeof(text) - 1) + 1);
    errno = saved;
}

void
hed_bug_at(const char *file, int line, const char *fmt, ...)
{
    struct hed_why what;
    va_list ap;

    va_start(ap, fmt);
    if (vsnprintf(what.text, sizeof(what.text), fmt, ap) < 0)
        what.text[0] = '\0';
    va_end(ap);

#ifdef HED_DEBUG
    hed_log_write(HED_LOG_BASE, HED_LEVEL_ERROR, "bug: %s:%d: %s", file, line, what.text);
    __builtin_trap();
#else
    hed_error(BASE, "bug: %s:%d: %s", file, line, what.text);
#endif
}
