/* Reading the settings of core/config.h. */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "core/profiles.h"

#define ENV_PREFIX "HEDDLE_"
#define KEY_MAX 64
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

enum kind { KIND_TEXT, KIND_SIZE, KIND_NUMBER, KIND_WORD };

struct setting {
    enum kind kind;
    const char *key;
    const char *value; /* default */
    const char *help;
    size_t offset;
    size_t size;
};

static const struct setting settings[] = {
#define SETTING(kind, key, value, help) \
    {KIND_##kind,                       \
     #key,                              \
     value,                             \
     help,                              \
     offsetof(struct hed_config, key),  \
     sizeof((struct hed_config *)0)->key},
    HED_SETTINGS(SETTING)
#undef SETTING
};

#define SETTING_COUNT (sizeof settings / sizeof *settings)

/* The ranges of some settings. */
static const struct {
    const char *key;
    uint64_t low, high;
} ranges[] = {
    {"trace_buffer", 64u << 10, 16u << 20},
    {"trace_data", 0, 1u << 20},
    {"trace_owner", 0, INT32_MAX},
    {"cpu_threads", 0, 1024},
    {"cpu_after_time", 1, 86400},
    {"cpu_after_most", 0, 1000},
    {"connect_timeout", 1, 600000},
    {"server_timeout", 1000, 600000},
    {"kernel_time", 0, 2000000},
    {"compile_time", 0, 2000000},
};

static const struct {
    const char *key;
    const char *words[5]; /* ends with NULL */
} choices[] = {
    {"trace_full", {"block", "drop"}},
    {"trace_repeats", {"count", "all"}},
    {"insecure", {"no", "yes"}},
    {"fail_on_refusal", {"no", "yes"}},
    {"cpu_codegen", {"tiered", "warp", "baseline"}},
    {"cpu_after", {"on", "off"}},
    {"cpu_perf_map", {"no", "yes"}},
    {"cpu_code", {"auto", "ptx", "sass"}},
    {"lift", {"no", "yes"}},
    {"fast_libs", {"no", "yes"}},
    {"control", {"no", "yes"}},
    {"cache_trust", {"user", "group"}},
    {"cpu_confine", {"no", "yes"}},
    {"orders", {"trusted", "on", "off"}},
    {"cudart", {"auto", "own", "nvidia"}},
};

const char *const hed_config_gpus[] = {"auto", "gpu", "cpu", "null", NULL};
const char *const hed_config_layers[] = {"trace",  "fault", "watch", "quota",
                                         "record", "sched", "lift",  NULL};

/* no_counter: the trace reads CLOCK_MONOTONIC instead of the processor's counter. */
const char *const hed_config_perfs[] = {"no_counter", NULL};

static const struct setting *
find_setting(const char *key)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

bool
hed_config_describe(size_t i, const char **key, const char **value, const char **help)
{
    if (i >= SETTING_COUNT)
        return false;
    *key = settings[i].key;
    *value = settings[i].value;
    *help = settings[i].help;
    return true;
}

static int
set_number_setting(struct hed_config *c, const struct setting *s, const char *value,
                   struct hed_why *why)
{
    uint64_t n;
    const int err = s->kind == KIND_SIZE ? hed_parse_size(value, &n) : hed_parse_u64(value, &n);

    if (err) {
        hed_why_set(why, "%s: '%s' is not a %s", s->key, value,
                    s->kind == KIND_SIZE ? "size such as 64k or 1M" : "number");
        return err;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (strcmp(ranges[i].key, s->key) != 0 || (n >= ranges[i].low && n <= ranges[i].high))
            continue;
        hed_why_set(why, "%s: %s is not between %llu and %llu", s->key, value,
                    (unsigned long long)ranges[i].low, (unsigned long long)ranges[i].high);
        return HED_ERANGE;
    }
    memcpy((char *)c + s->offset, &n, sizeof n);
    return 0;
}

static void
list_names(char *out, size_t size, const char *const *names)
{
    size_t n = 0;

    for (const char *const *k = names; *k && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", k == names ? "" : ", ", *k);
}

/* A list has names separated by commas, without blanks. Each is known, and none is repeated. */
static int
check_names(const char *key, const char *list, const char *const *known, struct hed_why *why)
{
    char all[128] = "";
    unsigned seen = 0;

    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        unsigned k = 0;

        while (known[k] && (strlen(known[k]) != n || memcmp(known[k], p, n) != 0))
            k++;
        if (!known[k] || seen >> k & 1) {
            list_names(all, sizeof all, known);
            hed_why_set(why,
                        known[k] ? "%s: '%.*s' is given twice"
                                 : "%s: there is no '%.*s'; choose from %s",
                        key, n < 64 ? (int)n : 64, p, all);
            return HED_EINVAL;
        }
        seen |= 1u << k;
        p += n;
        if (!*p)
            return 0;
    }
}

bool
hed_config_perf_has(const struct hed_config *c, const char *name)
{
    const size_t length = strlen(name);

    for (const char *p = c->perf; *p;) {
        const size_t n = strcspn(p, ",");

        if (n == length && memcmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

bool
hed_config_gpu_is(const char *gpu, const char *name)
{
    const size_t n = strlen(name);

    return strncmp(gpu, name, n) == 0 && (gpu[n] == '\0' || gpu[n] == ':');
}

/* A hello has 128 bytes for the token. */
#define TOKEN_MAX 127

static int
check_token(const char *value, struct hed_why *why)
{
    if (strlen(value) <= TOKEN_MAX)
        return 0;
    hed_why_set(why, "tls_token: the token is longer than %d characters", TOKEN_MAX);
    return HED_ELIMIT;
}

bool
hed_config_gpu_is_address(const char *gpu)
{
    static const char *const begins[] = {"unix:", "shm:", "tcp://", "vm:"};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(gpu, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* Checks where work runs. The backend that connects to an address checks that. */
static int
check_gpu(const char *value, struct hed_why *why)
{
    if (hed_config_gpu_is_address(value))
        return 0;
    if (hed_config_gpu_is(value, "cpu")) {
        if (value[3] == '\0' || value[4] != '\0')
            return hed_profiles_check(value, why);
        hed_why_set(why, "gpu: 'cpu:' names no device; use cpu, or for example cpu:h100");
        return HED_EINVAL;
    }
    if (strchr(value, ',')) {
        hed_why_set(why, "gpu: '%.64s' is a list; only cpu:DEVICE,DEVICE,... can be one", value);
        return HED_EINVAL;
    }
    for (const char *const *name = hed_config_gpus; *name; name++)
        if (strcmp(value, *name) == 0)
            return 0;

    char device[80];
    const int n = snprintf(device, sizeof device, "cpu:%s", value);

    if (n > 4 && (size_t)n < sizeof device && hed_profiles_check(device, NULL) == 0 &&
        hed_profiles_folder(device, 0) != HED_ENOTFOUND) {
        hed_why_set(why, "gpu: '%.64s' is a device that the CPU can be; did you mean 'cpu:%.64s'?",
                    value, value);
        return HED_EINVAL;
    }
    hed_why_set(why,
                "gpu: there is no '%.64s'; choose from auto, gpu, cpu, cpu:DEVICE, null, shm:PATH, "
                "unix:PATH, tcp://HOST:PORT and vm:",
                value);
    return HED_EINVAL;
}

/* "key: 'value' is neither a, b nor c" */
static void
refuse_word(const char *key, const char *value, const char *const *words, struct hed_why *why)
{
    char text[128];
    size_t n = 0;

    text[0] = 0;
    for (; *words; words++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
                              n == 0     ? ""
                              : words[1] ? ", "
                                         : " nor ",
                              *words);
    hed_why_set(why, "%s: '%.64s' is neither %s", key, value, text);
}

/* Paths are complete: the program may be in another folder than the command that sets them. */
static int
check_plugins(const char *value, struct hed_why *why)
{
    for (const char *at = value; at; at = *at ? at + 1 : NULL) {
        if (*at != '/') {
            hed_why_set(why, "plugins: '%.99s' does not begin with '/'; it is a list of paths", at);
            return HED_EINVAL;
        }
        at += strcspn(at, ",");
    }
    return 0;
}

static int
set_text(struct hed_config *c, const struct setting *s, const char *value, struct hed_why *why)
{
    if (strlen(value) >= s->size && s->kind == KIND_TEXT) {
        hed_why_set(why, "%s: the value is longer than %zu characters", s->key, s->size - 1);
        return HED_ELIMIT;
    }
    int err = 0;

    if (strcmp(s->key, "gpu") == 0)
        err = check_gpu(value, why);
    else if (strcmp(s->key, "layers") == 0 && *value)
        err = check_names(s->key, value, hed_config_layers, why);
    else if (strcmp(s->key, "plugins") == 0 && *value)
        err = check_plugins(value, why);
    else if (strcmp(s->key, "perf") == 0 && *value)
        err = check_names(s->key, value, hed_config_perfs, why);
    else if (strcmp(s->key, "tls_token") == 0)
        err = check_token(value, why);
    if (err)
        return err;
    for (size_t i = 0; s->kind == KIND_WORD && i < sizeof choices / sizeof *choices; i++) {
        const char *const *w = choices[i].words;

        if (strcmp(choices[i].key, s->key) != 0)
            continue;
        while (*w && strcmp(*w, value) != 0)
            w++;
        if (!*w) {
            refuse_word(s->key, value, choices[i].words, why);
            return HED_EINVAL;
        }
    }
    (void)hed_str_copy((char *)c + s->offset, s->size, value);
    return 0;
}

int
hed_config_set(struct hed_config *c, const char *key, const char *value, struct hed_why *why)
{
    const struct setting *s = find_setting(key);

    if (!s) {
        hed_why_set(why, "there is no setting '%.64s'; `heddle help settings` lists them", key);
        return HED_ENOTFOUND;
    }
    return s->kind == KIND_TEXT || s->kind == KIND_WORD ? set_text(c, s, value, why)
                                                        : set_number_setting(c, s, value, why);
}

void
hed_config_init(struct hed_config *c)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (hed_config_set(c, settings[i].key, settings[i].value, NULL))
            hed_bug("the default of %s is refused", settings[i].key);
}

/* Reads one line of a file, without its newline, which is changed. */
static int
parse_line(struct hed_config *c, char *line, struct hed_why *why)
{
    char *key = hed_str_trim(line);

    if (*key == 0 || *key == '#')
        return 0;

    char *equals = strchr(key, '=');

    if (!equals) {
        hed_why_set(why, "expected 'key = value', found '%.64s'", key);
        return HED_EFORMAT;
    }
    *equals = 0;
    return hed_config_set(c, hed_str_trim(key), hed_str_trim(equals + 1), why);
}

int
hed_config_parse(struct hed_config *c, const char *text, size_t size, const char *name,
                 struct hed_why *why)
{
    char line[HED_CONFIG_TEXT_MAX + KEY_MAX];
    const char *end = text + size;

    for (unsigned number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((newline ? newline : end) - text);
        struct hed_why reason = {""};
        int err = HED_ELIMIT;

        if (length >= sizeof line) {
            hed_why_set(&reason, "the line is too long");
        } else if (memchr(text, 0, length)) {
            err = HED_EFORMAT;
            hed_why_set(&reason, "there is a zero byte in the line");
        } else {
            memcpy(line, text, length);
            line[length] = 0;
            err = parse_line(c, line, &reason);
        }
        if (err) {
            hed_why_set(why, "%s:%u: %s", name, number, reason.text);
            return err;
        }
        text += length + (newline ? 1 : 0);
    }
    return 0;
}

static const char *
env_get(char *const *env, const char *name)
{
    const size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* Reads a complete file of at most HED_CONFIG_FILE_MAX bytes. If `trusted` is not NULL, nobody but
 * that user may be able to change the file. */
static int
read_file(const char *path, const uid_t *trusted, char **text, size_t *size, struct hed_why *why)
{
    /* A FIFO without a writer must not block. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    size_t n = 0;
    ssize_t got = 1;

    if (fd < 0) {
        hed_why_set(why, "%s: %s", path, strerror(errno));
        return hed_err_from_errno(errno);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        hed_why_set(why, "%s: not a regular file", path);
        close(fd);
        return HED_EINVAL;
    }
    if (trusted && (st.st_uid != *trusted || (st.st_mode & OTHERS_WRITE) != 0)) {
        hed_why_set(why, "%s: only root may own it and be able to change it", path);
        close(fd);
        return HED_EACCESS;
    }
    *text = malloc(HED_CONFIG_FILE_MAX + 1);
    while (*text && got > 0 && n <= HED_CONFIG_FILE_MAX) {
        got = read(fd, *text + n, HED_CONFIG_FILE_MAX + 1 - n);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            n += (size_t)got;
    }

    const int err = !*text                    ? HED_ENOMEM
                    : got < 0                 ? hed_err_from_errno(errno)
                    : n > HED_CONFIG_FILE_MAX ? HED_ELIMIT
                                              : 0;

    close(fd);
    if (err) {
        hed_why_set(why, "%s: %s", path, hed_err_text(err));
        free(*text);
        *text = NULL;
    }
    *size = n;
    return err;
}

/* Reads one settings file. Unless it `must` be there, one that cannot be read is a warning. */
static int
load_one_file(struct hed_config *c, const char *path, const uid_t *trusted, bool must,
              struct hed_why *why)
{
    struct hed_why reason = {""};
    char *text = NULL;
    size_t size = 0;
    int err = read_file(path, trusted, &text, &size, &reason);

    if (err && !must) {
        if (err != HED_ENOTFOUND)
            hed_why_set(&c->warning, "%s; the settings in it have no effect", reason.text);
        return 0;
    }
    if (err)
        hed_why_set(why, "cannot read the settings file %s", reason.text);
    else
        err = hed_config_parse(c, text, size, path, why);
    free(text);
    return err;
}

/* Reads the user's file. Only a file that HEDDLE_CONFIG names must be there and readable. */
static int
load_users_file(struct hed_config *c, char *const *env, struct hed_why *why)
{
    const char *given = env_get(env, ENV_PREFIX "CONFIG");
    const char *xdg = env_get(env, "XDG_CONFIG_HOME");
    const char *home = env_get(env, "HOME");
    char path[4096] = "";
    int n = 0;

    if (given)
        n = snprintf(path, sizeof path, "%s", given);
    else if (xdg && *xdg)
        n = snprintf(path, sizeof path, "%s/heddle/heddle.conf", xdg);
    else if (home && *home)
        n = snprintf(path, sizeof path, "%s/.config/heddle/heddle.conf", home);
    if (n < 0 || (size_t)n >= sizeof path) {
        hed_why_set(why, "the path of the settings file is too long");
        return HED_ELIMIT;
    }
    return *path ? load_one_file(c, path, NULL, given != NULL, why) : 0;
}

static int
load_env(struct hed_config *c, char *const *env, struct hed_why *why)
{
    for (; env && *env; env++) {
        const char *name = *env + strlen(ENV_PREFIX);
        const char *equals = strchr(*env, '=');
        char key[KEY_MAX];
        struct hed_why reason = {""};

        if (strncmp(*env, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || !equals)
            continue;
        /* Where the settings are, and where heddle's Python package finds heddle. */
        if (equals - name == 6 &&
            (strncmp(name, "CONFIG", 6) == 0 || strncmp(name, "PREFIX", 6) == 0))
            continue;

        const size_t n = (size_t)(equals - name);

        if (n >= sizeof key) {
            hed_why_set(why, "%.100s: there is no such setting; `heddle help settings` lists them",
                        *env);
            return HED_ENOTFOUND;
        }
        for (size_t i = 0; i < n; i++)
            key[i] = (char)tolower((unsigned char)name[i]);
        key[n] = 0;

        const int err = hed_config_set(c, key, equals + 1, &reason);

        if (err) {
            hed_why_set(why, "%.*s: %s", (int)(equals - *env), *env, reason.text);
            return err;
        }
    }
    return 0;
}

int
hed_config_load_from(struct hed_config *c, const struct hed_config_places *p, char *const *env,
                     struct hed_why *why)
{
    hed_config_init(c);
    /* Whoever starts such a program has fewer rights than it has, and chose the environment. */
    if (p->secure)
        env = NULL;

    int err = load_one_file(c, p->system, &p->owner, false, why);

    if (!err)
        err = load_users_file(c, env, why);
    if (p->secure)
        c->plugins[0] = '\0'; /* code of others gets no more rights than its user has */

    const char *log = env_get(env, ENV_PREFIX "LOG");

    /* First of all, so that the log can tell what is wrong with the other settings. */
    if (log)
        (void)hed_config_set(c, "log", log, NULL);
    return err ? err : load_env(c, env, why);
}

int
hed_config_load(struct hed_config *c, char *const *env, struct hed_why *why)
{
    const struct hed_config_places places = {
        .system = HED_CONFIG_SYSTEM,
        .owner = 0,
        .secure = getauxval(AT_SECURE) != 0,
    };

    return hed_config_load_from(c, &places, env, why);
}
