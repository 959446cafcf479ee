/* The words of the command line: options, messages, "did you mean". */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/number.h"
#include "base/str.h"

#define WORD_MAX 32
#define COLUMNS 79

/* Writes a line that is safe for a terminal. The text comes first: it may contain %m. The line goes
 * out at once, because the program may write to the same file meanwhile. */
__attribute__((format(printf, 3, 0))) static void
put_line(FILE *to, const char *prefix, const char *fmt, va_list args)
{
    char *text = NULL, *line = NULL;
    size_t size = 0;

    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    fflush(stdout);

    FILE *whole = open_memstream(&line, &size);
    FILE *f = whole ? whole : to;

    fputs(prefix, f);
    hed_cli_put(f, text ? text : fmt);
    fputc('\n', f);
    if (whole && fclose(whole) == 0)
        (void)fwrite(line, 1, size, to);
    free(line);
    free(text);
}

void
hed_cli_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put_line(stderr, "heddle: ", fmt, args);
    va_end(args);
}

int
hed_cli_lacks(const char *command, const char *option)
{
    hed_cli_say("%s: this heddle was built without it (HEDDLE_%s=OFF)", command, option);
    return HED_EXIT_FAILED;
}

void
hed_cli_tell(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put_line(stdout, "", fmt, args);
    va_end(args);
    fflush(stdout);
}

/* Reads a character of UTF-8. Returns how many bytes it has; 1 and U+FFFD for what is none. */
static size_t
take_character(const char *text, size_t n, uint32_t *out)
{
    const unsigned char *p = (const unsigned char *)text;
    const size_t size = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;

    *out = size == 1 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size && size <= n; i++) {
        *out = *out << 6 | (p[i] & 0x3f);
        if ((p[i] & 0xc0) != 0x80)
            *out = UINT32_MAX >> 1; /* and it stays too large */
    }
    if (size > n || (size == 1 && p[0] >= 0x80) || *out > 0x10ffff) {
        *out = 0xfffd;
        return 1;
    }
    return size;
}

/* Does it print something, in its place? What controls a terminal does not: also the second set of
 * control characters, among which is another ESC [, and those that turn the direction of text. */
static bool
is_plain(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c != 0xfffd && !(c >= 0x2028 && c <= 0x202e) &&
           !(c >= 0x2066 && c <= 0x2069);
}

static void
put_plain(FILE *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        const size_t size = take_character(text + i, n - i, &c);

        if (is_plain(c))
            fwrite(text + i, 1, size, out);
        else
            fputc('?', out);
        i += size;
    }
}

void
hed_cli_put(FILE *out, const char *text)
{
    put_plain(out, text, strlen(text));
}

void
hed_cli_fold(FILE *out, const char *text, size_t at)
{
    size_t column = at;

    for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");

        if (column > at && column + 1 + n > COLUMNS) {
            fprintf(out, "\n%*s", (int)at, "");
            column = at;
        }
        if (column > at) {
            fputc(' ', out);
            column++;
        }
        put_plain(out, p, n);
        column += n;
        p += n;
    }
    fputc('\n', out);
}

unsigned
hed_cli_distance(const char *a, const char *b)
{
    const size_t n = strlen(a);
    const size_t m = strlen(b);
    unsigned d[WORD_MAX + 1][WORD_MAX + 1];

    if (n >= WORD_MAX || m >= WORD_MAX)
        return HED_CLI_FAR;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            const unsigned change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            d[i][j] = hed_min(change, hed_min(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = hed_min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

bool
hed_cli_similar(unsigned distance, const char *typed)
{
    /* One letter in three: more than that is another word. */
    return distance <= 1 + strlen(typed) / 4 && distance < strlen(typed);
}

struct hed_cli_opts
hed_cli_opts_over(const struct hed_cli_opt *table, int argc, char **argv)
{
    return (struct hed_cli_opts){argv[0], table, argc, argv, 1, NULL};
}

/* The option that `n` letters of `word` name, or -1. */
static int
find_option(const struct hed_cli_opt *table, const char *word, size_t n)
{
    for (int i = 0; table[i].name; i++) {
        if (strlen(table[i].name) == n && memcmp(table[i].name, word, n) == 0)
            return i;
    }
    return -1;
}

static int
unknown_option(const struct hed_cli_opts *o, const char *word)
{
    const char *best = NULL;
    unsigned least_far = HED_CLI_FAR;
    char typed[WORD_MAX];

    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    for (const struct hed_cli_opt *t = o->table; typed[0] == '-' && typed[1] == '-' && t->name;
         t++) {
        const unsigned far = hed_cli_distance(typed + 2, t->name);

        if (far < least_far) {
            least_far = far;
            best = t->name;
        }
    }
    if (best && hed_cli_similar(least_far, typed + 2))
        hed_cli_say("%s: there is no option '%s'; did you mean --%s?", o->command, typed, best);
    else
        hed_cli_say("%s: there is no option '%s'; see heddle %s --help", o->command, word,
                    o->command);
    return HED_CLI_OPT_BAD;
}

int
hed_cli_opts_next(struct hed_cli_opts *o)
{
    const char *word = o->at < o->argc ? o->argv[o->at] : NULL;

    o->value = NULL;
    if (!word || word[0] != '-' || word[1] == '\0')
        return HED_CLI_OPT_END;
    o->at++;
    if (strcmp(word, "--") == 0)
        return HED_CLI_OPT_END;

    const bool is_long = word[1] == '-';
    const size_t n = is_long ? strcspn(word + 2, "=") : 0;
    const int i = is_long ? find_option(o->table, word + 2, n)
                          : (strcmp(word, "-h") == 0 ? find_option(o->table, "help", 4) : -1);

    if (i < 0)
        return unknown_option(o, word);
    if (is_long && word[2 + n] == '=')
        o->value = word + 2 + n + 1;
    if (o->value && !o->table[i].takes_value) {
        hed_cli_say("%s: --%s takes no value, but was given '%s'", o->command, o->table[i].name,
                    o->value);
        return HED_CLI_OPT_BAD;
    }
    if (!o->value && o->table[i].takes_value) {
        if (o->at >= o->argc) {
            hed_cli_say("%s: --%s needs a value; see heddle %s --help", o->command,
                        o->table[i].name, o->command);
            return HED_CLI_OPT_BAD;
        }
        o->value = o->argv[o->at++];
    }
    return i;
}

bool
hed_cli_opts_no_operands(const struct hed_cli_opts *o)
{
    if (o->at >= o->argc)
        return true;
    hed_cli_say("%s: unexpected '%s'; see heddle %s --help", o->command, o->argv[o->at],
                o->command);
    return false;
}

int
hed_cli_words_next(struct hed_cli_opts *o, bool *plain)
{
    static char output[] = "--output";
    char *word = o->at < o->argc ? o->argv[o->at] : NULL;

    if (!word)
        return HED_CLI_OPT_END;
    if (!*plain && strcmp(word, "--") == 0) {
        *plain = true;
        o->at++;
        return hed_cli_words_next(o, plain);
    }
    if (*plain || word[0] != '-' || word[1] == '\0') {
        o->at++;
        o->value = word;
        return HED_CLI_OPERAND;
    }
    if (strcmp(word, "-o") == 0)
        o->argv[o->at] = output;
    return hed_cli_opts_next(o);
}

size_t
hed_cli_columns(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;
    uint64_t n;

    if (columns && hed_parse_u64(columns, &n) == 0 && n > 0 && n < 10000)
        return (size_t)n;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        return w.ws_col;
    return 0;
}
