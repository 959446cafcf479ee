/* Errors: the codes, their texts, the reason a human reads, and our own bugs.
 *
 * Functions that do not have the shape of an API return 0 or one of these negative codes. This is
 * not where API results (CUresult, nvmlReturn_t) live, nor where they are translated.
 */
#pragma once

/* X(name, value, text). Values are negative, never reused and never renumbered: they appear in
 * logs and reports.
 */
#define HED_ERR_MAP(X)                               \
    X(HED_ENOMEM, -1, "out of memory")               \
    X(HED_EINVAL, -2, "invalid value")               \
    X(HED_ERANGE, -3, "value out of range")          \
    X(HED_EFORMAT, -4, "malformed data")             \
    X(HED_ETRUNC, -5, "data ends too early")         \
    X(HED_EVERSION, -6, "unsupported version")       \
    X(HED_ELIMIT, -7, "over a limit")                \
    X(HED_ENOTFOUND, -8, "not found")                \
    X(HED_EEXIST, -9, "already exists")              \
    X(HED_EACCESS, -10, "permission denied")         \
    X(HED_EIO, -11, "input/output error")            \
    X(HED_ENOTSUP, -12, "not supported")             \
    X(HED_ESTATE, -13, "not possible in this state") \
    X(HED_ETIME, -14, "time ran out")

enum hed_err {
#define HED_ERR_ENUM(name, value, text) name = (value),
    HED_ERR_MAP(HED_ERR_ENUM)
#undef HED_ERR_ENUM
};

/* A constant text for a code; 0 and unknown codes have one too. Never NULL. */
const char *hed_err_text(int err);

/* The code nearest to an errno value; 0 for 0, HED_EIO for what has no better match. */
int hed_err_from_errno(int e);

/* The reason of a failure, for a human. The caller owns it and need not initialise it; it holds
 * text only after a failure of a function that takes one.
 */
struct hed_why {
    char text[512];
};

/* Fills in the reason, cut to fit and always terminated. why may be NULL. why->text may be among
 * the arguments, which is how a caller puts its own words in front. Keeps errno.
 */
void hed_why_set(struct hed_why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reports that one of our own invariants does not hold; never for what a program, a peer or a file
 * got wrong. Logs at error level and returns, so the caller must go on in some safe way. In debug
 * builds (HED_DEBUG) it writes whatever the log level, then traps.
 */
#define hed_bug(...) hed_bug_at(__FILE__, __LINE__, __VA_ARGS__)

void hed_bug_at(const char *file, int line, const char *fmt, ...)
    __attribute__((cold, format(printf, 3, 4)));
