/* The list of certificates that are refused although the authority has signed them: one per line,
 * by fingerprint (64 hexadecimal digits, with or without colons, as `heddle cert show` prints it)
 * or by the name in it. `#` begins a comment.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/server/gate/gate.h"

#define DENY_MAX (1 << 20) /* bytes of the file */

int
hed_deny_read(const char *path, struct hed_deny_list *out, struct hed_why *why)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < DENY_MAX &&
        (text = malloc((size_t)st.st_size + 1)) != NULL)
        n = read(fd, text, (size_t)st.st_size);
    if (fd >= 0)
        (void)close(fd);
    /* What followed a zero would not count, and whoever it names would be let in. */
    if (n < 0 || n != st.st_size || memchr(text, 0, (size_t)n)) {
        hed_why_set(why, "%.300s: the list of refused certificates cannot be read", path);
        free(text);
        return HED_EIO;
    }
    text[n] = '\0';
    out->text = text;
    return 0;
}

/* Copies the line without comment and space around it. Returns what follows, NULL at the end. */
static const char *
next_line(const char *at, char *line, size_t size)
{
    const size_t whole = strcspn(at, "\n");
    size_t n = strcspn(at, "#\n");
    const char *from = at;

    if (!*at)
        return NULL;
    while (n > 0 && isspace((unsigned char)*from))
        from++, n--;
    while (n > 0 && isspace((unsigned char)from[n - 1]))
        n--;
    n = n < size ? n : size - 1;
    memcpy(line, from, n);
    line[n] = '\0';
    return at + whole + (at[whole] == '\n');
}

static bool
is_fingerprint(const char *line, const uint8_t fingerprint[32])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < 32; i++) {
        if (i > 0 && *line == ':')
            line++;
        if (tolower((unsigned char)line[0]) != digits[fingerprint[i] >> 4] ||
            tolower((unsigned char)line[1]) != digits[fingerprint[i] & 15])
            return false;
        line += 2;
    }
    return *line == '\0';
}

/* The name of a certificate is shown as printable characters, and cut. So is the line. */
static bool
is_shown_name(const char *line, const struct hed_conn_who *who)
{
    char shown[sizeof who->name];

    (void)hed_str_copy(shown, sizeof shown, line);
    hed_conn_show_name(shown);
    return strcmp(shown, who->name) == 0;
}

bool
hed_deny_has(const struct hed_deny_list *l, const struct hed_conn_who *who)
{
    char line[256];

    if (!l->text || !who->certified)
        return false;
    for (const char *at = l->text; (at = next_line(at, line, sizeof line)) != NULL;)
        if (line[0] && (is_shown_name(line, who) || is_fingerprint(line, who->fingerprint)))
            return true;
    return false;
}
