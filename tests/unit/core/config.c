/* Tests of core/config: where settings come from, and which are refused, with which message. */
#include "harness/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "core/config.h"
#include "core/profiles.h"

static struct hed_config config; /* large */
static struct hed_why why;

/* Makes a file in the scratch folder. The returned path stays valid until the next call. */
static const char *
file_of(const char *name, const void *text, size_t size)
{
    static char path[1024];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
    return path;
}

static void
folder_of(const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);
    assert_true(mkdir(path, 0777) == 0);
}

/* hed_config_load with up to three variables. */
static int
load_settings(const char *a, const char *b, const char *c)
{
    char copies[3][8192];
    char *env[4] = {NULL};
    const char *given[3] = {a, b, c};

    for (size_t i = 0, n = 0; i < 3; i++) {
        if (given[i]) {
            snprintf(copies[i], sizeof copies[i], "%s", given[i]);
            env[n++] = copies[i];
        }
    }
    memset(&why, 0, sizeof why);
    return hed_config_load(&config, env, &why);
}

static int
parse_settings(const char *text)
{
    hed_config_init(&config);
    memset(&why, 0, sizeof why);
    return hed_config_parse(&config, text, strlen(text), "f.conf", &why);
}

static void
defaults_are_as_described(void **state)
{
    const char *key;
    const char *value;
    const char *help;
    size_t n = 0;

    hed_config_init(&config);
    assert_string_equal(config.gpu, "auto");
    assert_string_equal(config.layers, "");
    assert_string_equal(config.trace, "");
    assert_true(config.trace_buffer == 1 << 20);
    assert_string_equal(config.trace_full, "block");
    assert_true(config.trace_data == 0);
    assert_true(config.trace_owner == 0);
    assert_true(config.cpu_threads == 0);
    assert_string_equal(config.cpu_codegen, "tiered");
    assert_string_equal(config.cpu_code, "auto");
    assert_string_equal(config.cache, "");
    assert_true(config.cache_size == 1 << 30);
    assert_string_equal(config.tls_ca, "");
    assert_string_equal(config.insecure, "no");
    assert_true(config.connect_timeout == 5000);
    for (; hed_config_describe(n, &key, &value, &help); n++) {
        assert_true(strlen(help) > 5);
        assert_int_equal(hed_config_set(&config, key, value, &why), 0);
    }
    assert_true(n >= 16);
    assert_false(hed_config_describe(SIZE_MAX, &key, &value, &help));
    assert_int_equal(load_settings(NULL, NULL, NULL), 0);
    assert_int_equal(hed_config_load(&config, NULL, NULL), 0);
    assert_string_equal(config.gpu, "auto");
}

static void
file_is_read(void **state)
{
    assert_int_equal(
        parse_settings("# a comment\n\n  gpu =  null  \n\ttrace_buffer=64k\r\ntrace= /a b#c \n"
                       "   # indented\nlog=a=b"),
        0);
    assert_string_equal(config.gpu, "null");
    assert_true(config.trace_buffer == 65536);
    assert_string_equal(config.trace, "/a b#c");
    assert_string_equal(config.log, "a=b"); /* only the first = separates */
    assert_int_equal(parse_settings(""), 0);
    assert_int_equal(hed_config_parse(&config, NULL, 0, "f.conf", &why), 0);
    assert_int_equal(parse_settings("gpu=null\ngpu=gpu\n"), 0);
    assert_string_equal(config.gpu, "gpu"); /* the last one counts */
}

/* hed_config_load_from with the machine's file, the user's file and up to one variable. */
static int
load_places(const char *system, uid_t owner, bool secure, const char *users, const char *variable)
{
    char given[1100];
    char other[1100] = "";
    char *env[] = {given, other, NULL};
    const struct hed_config_places places = {.system = system, .owner = owner, .secure = secure};

    snprintf(given, sizeof given, "HEDDLE_CONFIG=%s", users);
    snprintf(other, sizeof other, "%s", variable ? variable : "PATH=/bin");
    memset(&why, 0, sizeof why);
    return hed_config_load_from(&config, &places, env, &why);
}

static void
machines_file_comes_last(void **state)
{
    static const char ours[] = "gpu = null\ntrace_data = 5\ntrace_full = drop\n";
    static const char users[] = "trace_data = 6\ntrace_full = block\n";
    char system[1024];
    char user[1024];

    snprintf(system, sizeof system, "%s", file_of("system", ours, strlen(ours)));
    snprintf(user, sizeof user, "%s", file_of("user", users, strlen(users)));
    assert_int_equal(chmod(system, 0644), 0);
    assert_int_equal(load_places(system, geteuid(), false, user, "HEDDLE_TRACE_DATA=7"), 0);
    assert_string_equal(config.gpu, "null");
    assert_string_equal(config.trace_full, "block");
    assert_true(config.trace_data == 7);
    assert_int_equal(load_places(system, geteuid(), false, "", NULL), 0);
    assert_true(config.trace_data == 5);
    assert_string_equal(config.warning.text, "");
}

static void
secure_programs_read_the_machines_file_alone(void **state)
{
    static const char ours[] = "gpu = null\nplugins = /opt/layer.so\n";
    char system[1024];

    snprintf(system, sizeof system, "%s", file_of("secure", ours, strlen(ours)));
    assert_int_equal(chmod(system, 0644), 0);
    assert_int_equal(load_places(system, geteuid(), true, "/there/is/none", "HEDDLE_LOG=debug"), 0);
    assert_string_equal(config.gpu, "null");
    assert_string_equal(config.log, "");
    assert_string_equal(config.plugins, ""); /* never in such programs */
    assert_int_equal(load_places(system, geteuid(), false, "", NULL), 0);
    assert_string_equal(config.plugins, "/opt/layer.so");
    assert_int_equal(load_places(system, geteuid(), true, "", "HEDDLE_NONSENSE=1"), 0);
    assert_int_equal(load_places("/there/is/none", 0, true, "", "HEDDLE_GPU=null"), 0);
    assert_string_equal(config.gpu, "auto");
}

static void
machines_file_of_others_has_no_effect(void **state)
{
    static const char ours[] = "gpu = null\n";
    char system[1024];

    snprintf(system, sizeof system, "%s", file_of("others", ours, strlen(ours)));
    assert_int_equal(chmod(system, 0664), 0);
    assert_int_equal(load_places(system, geteuid(), true, "", NULL), 0);
    assert_string_equal(config.gpu, "auto");
    assert_non_null(strstr(config.warning.text, "only root may own it"));
    assert_int_equal(chmod(system, 0646), 0);
    assert_int_equal(load_places(system, geteuid(), true, "", NULL), 0);
    assert_string_equal(config.gpu, "auto");
    assert_int_equal(chmod(system, 0644), 0);
    assert_int_equal(load_places(system, geteuid() + 1, true, "", NULL), 0);
    assert_string_equal(config.gpu, "auto");
}

static void
environment_wins_over_file(void **state)
{
    static const char text[] = "gpu = null\ntrace_data = 5\n";
    char variable[1100];

    snprintf(variable, sizeof variable, "HEDDLE_CONFIG=%s", file_of("a", text, strlen(text)));
    assert_int_equal(load_settings(variable, NULL, NULL), 0);
    assert_string_equal(config.gpu, "null");
    assert_true(config.trace_data == 5);
    assert_int_equal(load_settings("HEDDLE_GPU=gpu", variable, "PATH=/bin"), 0);
    assert_string_equal(config.gpu, "gpu");
    assert_true(config.trace_data == 5);
    assert_int_equal(load_settings(variable, "HEDDLE_TRACE_DATA=7", "HEDDLE_TRACE="), 0);
    assert_true(config.trace_data == 7);
    assert_string_equal(config.trace, "");
}

static void
xdg_and_home_are_looked_at(void **state)
{
    char xdg[1100];
    char home[1100];

    folder_of("xdg");
    folder_of("xdg/heddle");
    folder_of("home");
    folder_of("home/.config");
    folder_of("home/.config/heddle");
    file_of("xdg/heddle/heddle.conf", "log=x\n", 6);
    file_of("home/.config/heddle/heddle.conf", "log=h\n", 6);
    snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s/xdg", getenv("HED_SCRATCH"));
    snprintf(home, sizeof home, "HOME=%s/home", getenv("HED_SCRATCH"));
    assert_int_equal(load_settings(xdg, home, NULL), 0);
    assert_string_equal(config.log, "x");
    assert_int_equal(load_settings(home, "XDG_CONFIG_HOME=", NULL), 0);
    assert_string_equal(config.log, "h");
    /* HEDDLE_CONFIG comes before both, and if it is empty there is no file. */
    assert_int_equal(load_settings(home, "HEDDLE_CONFIG=", NULL), 0);
    assert_string_equal(config.log, "");
    /* A default file that is wrong is refused. */
    file_of("xdg/heddle/heddle.conf", "nonsense\n", 9);
    assert_int_equal(load_settings(xdg, home, NULL), HED_EFORMAT);
    assert_non_null(strstr(why.text, "xdg/heddle/heddle.conf:1: "));
}

static void
only_a_given_file_must_exist(void **state)
{
    assert_int_equal(load_settings("HOME=/nonexistent", NULL, NULL), 0);
    assert_int_equal(load_settings("XDG_CONFIG_HOME=/dev/null", NULL, NULL), 0);
    assert_int_equal(load_settings("HEDDLE_CONFIG=/nonexistent/x", NULL, NULL), HED_ENOTFOUND);
    assert_string_equal(why.text,
                        "cannot read the settings file /nonexistent/x: No such file or directory");
    assert_int_not_equal(load_settings("HEDDLE_CONFIG=/", NULL, NULL), 0);
    assert_non_null(strstr(why.text, "/: "));
}

static void
a_default_file_that_cannot_be_read_is_a_warning(void **state)
{
    char xdg[1100];
    char given[1100];

    folder_of("unread");
    folder_of("unread/heddle");
    folder_of("unread/heddle/heddle.conf"); /* not a file, so that root cannot read it either */
    snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s/unread", getenv("HED_SCRATCH"));
    assert_int_equal(load_settings(xdg, "HEDDLE_LOG=x", NULL), 0);
    assert_string_equal(config.log, "x");
    assert_non_null(strstr(config.warning.text, "unread/heddle/heddle.conf: not a regular file; "));
    snprintf(given, sizeof given, "HEDDLE_CONFIG=%s/unread/heddle/heddle.conf",
             getenv("HED_SCRATCH"));
    assert_int_equal(load_settings(given, NULL, NULL), HED_EINVAL);
    assert_int_equal(load_settings(NULL, NULL, NULL), 0);
    assert_string_equal(config.warning.text, "");
}

static void
too_large_a_file_is_refused(void **state)
{
    char *text = malloc(HED_CONFIG_FILE_MAX + 1);
    char variable[1100];

    memset(text, '\n', HED_CONFIG_FILE_MAX + 1);
    snprintf(variable, sizeof variable, "HEDDLE_CONFIG=%s",
             file_of("big", text, HED_CONFIG_FILE_MAX));
    assert_int_equal(load_settings(variable, NULL, NULL), 0);
    file_of("big", text, HED_CONFIG_FILE_MAX + 1);
    assert_int_equal(load_settings(variable, NULL, NULL), HED_ELIMIT);
    assert_non_null(strstr(why.text, "/big: over a limit"));
    free(text);
}

#define PLACES                                                 \
    "choose from auto, gpu, cpu, cpu:DEVICE, null, shm:PATH, " \
    "unix:PATH, tcp://HOST:PORT and vm:"

#define LAYERS "choose from trace, fault, watch, quota, record, sched, lift"

static void
bad_lines_are_refused_by_number(void **state)
{
    static const struct {
        const char *text;
        int err;
        const char *message;
    } rows[] = {
        {"\n\nnonsense\n", HED_EFORMAT, "f.conf:3: expected 'key = value', found 'nonsense'"},
        {"gpu=null\ncolour = red", HED_ENOTFOUND,
         "f.conf:2: there is no setting 'colour'; `heddle help settings` lists them"},
        {"= red", HED_ENOTFOUND,
         "f.conf:1: there is no setting ''; `heddle help settings` lists them"},
        {"gpu = tpu", HED_EINVAL, "f.conf:1: gpu: there is no 'tpu'; " PLACES},
        {"gpu = a100", HED_EINVAL,
         "f.conf:1: gpu: 'a100' is a device that the CPU can be; did you mean 'cpu:a100'?"},
        {"gpu = h100x8", HED_EINVAL,
         "f.conf:1: gpu: 'h100x8' is a device that the CPU can be; did you mean 'cpu:h100x8'?"},
        {"gpu = a1000", HED_EINVAL, "f.conf:1: gpu: there is no 'a1000'; " PLACES},
        {"gpu = cpux", HED_EINVAL, "f.conf:1: gpu: there is no 'cpux'; " PLACES},
        {"gpu = null:h100", HED_EINVAL, "f.conf:1: gpu: there is no 'null:h100'; " PLACES},
        {"gpu = cpu:", HED_EINVAL,
         "f.conf:1: gpu: 'cpu:' names no device; use cpu, or for example cpu:h100"},
        {"cpu_threads = 1025", HED_ERANGE, "f.conf:1: cpu_threads: 1025 is not between 0 and 1024"},
        {"insecure = maybe", HED_EINVAL, "f.conf:1: insecure: 'maybe' is neither no nor yes"},
        {"connect_timeout = 0", HED_ERANGE,
         "f.conf:1: connect_timeout: 0 is not between 1 and 600000"},
        {"cpu_codegen = fast", HED_EINVAL,
         "f.conf:1: cpu_codegen: 'fast' is neither tiered, warp nor baseline"},
        {"cpu_code = cubin", HED_EINVAL,
         "f.conf:1: cpu_code: 'cubin' is neither auto, ptx nor sass"},
        {"gpu = gpu,null", HED_EINVAL,
         "f.conf:1: gpu: 'gpu,null' is a list; only cpu:DEVICE,DEVICE,... can be one"},
        {"layers = trace,echo", HED_EINVAL, "f.conf:1: layers: there is no 'echo'; " LAYERS},
        {"layers = trace,,fault", HED_EINVAL, "f.conf:1: layers: there is no ''; " LAYERS},
        {"layers = trace,", HED_EINVAL, "f.conf:1: layers: there is no ''; " LAYERS},
        {"perf = no_magic", HED_EINVAL,
         "f.conf:1: perf: there is no 'no_magic'; choose from no_counter"},
        {"layers = trace,trace", HED_EINVAL, "f.conf:1: layers: 'trace' is given twice"},
        {"GPU = null", HED_ENOTFOUND,
         "f.conf:1: there is no setting 'GPU'; `heddle help settings` lists them"},
        {"trace_full = maybe", HED_EINVAL,
         "f.conf:1: trace_full: 'maybe' is neither block nor drop"},
        {"trace_full =", HED_EINVAL, "f.conf:1: trace_full: '' is neither block nor drop"},
        {"trace_buffer = big", HED_EINVAL,
         "f.conf:1: trace_buffer: 'big' is not a size such as 64k or 1M"},
        {"trace_buffer = -1", HED_EINVAL,
         "f.conf:1: trace_buffer: '-1' is not a size such as 64k or 1M"},
        {"trace_buffer = 65535", HED_ERANGE,
         "f.conf:1: trace_buffer: 65535 is not between 65536 and 16777216"},
        {"trace_buffer = 17M", HED_ERANGE,
         "f.conf:1: trace_buffer: 17M is not between 65536 and 16777216"},
        {"trace_data = 1025k", HED_ERANGE,
         "f.conf:1: trace_data: 1025k is not between 0 and 1048576"},
        {"trace_owner = 1k", HED_EINVAL, "f.conf:1: trace_owner: '1k' is not a number"},
        {"trace_owner = 4294967296", HED_ERANGE,
         "f.conf:1: trace_owner: 4294967296 is not between 0 and 2147483647"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(parse_settings(rows[i].text), rows[i].err);
        assert_string_equal(why.text, rows[i].message);
    }
    assert_int_equal(parse_settings("gpu = cpu:h1000"), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "gpu: there is no device 'h1000'; choose from a100-40g, "));
    assert_int_equal(parse_settings("gpu ="), HED_EINVAL);
    assert_int_equal(parse_settings("gpu = cpu:h100x8,t4\ncache_size = 0"), 0);
    assert_string_equal(config.gpu, "cpu:h100x8,t4");
    assert_int_equal(parse_settings("gpu = cpu"), 0);
    assert_int_equal(parse_settings("trace_buffer = 64k\ntrace_buffer=16M\ntrace_data=1M"), 0);
}

static void
missing_profiles_are_reported(void **state)
{
    struct hed_why reason = {""};
    char path[4096];
    unsigned count;

    assert_int_equal(hed_profiles_find("/nonexistent", "h200", path, sizeof path, &count, &reason),
                     HED_ENOTFOUND);
    assert_string_equal(reason.text, "gpu: there is no device 'h200', because no device profiles "
                                     "are in '/nonexistent'; install heddle again");
}

static void
refused_values_change_nothing(void **state)
{
    hed_config_init(&config);
    assert_int_equal(hed_config_set(&config, "trace_buffer", "1k", NULL), HED_ERANGE);
    assert_int_equal(hed_config_set(&config, "trace_full", "no", NULL), HED_EINVAL);
    assert_int_equal(hed_config_set(&config, "nothing", "1", NULL), HED_ENOTFOUND);
    assert_true(config.trace_buffer == 1 << 20);
    assert_string_equal(config.trace_full, "block");
}

static void
long_lines_and_values_are_refused(void **state)
{
    static char text[HED_CONFIG_TEXT_MAX + 200];

    memset(text, 'x', sizeof text - 1);
    memcpy(text, "trace=", 6);
    text[6 + HED_CONFIG_TEXT_MAX - 1] = 0;
    assert_int_equal(parse_settings(text), 0);
    assert_int_equal(strlen(config.trace), HED_CONFIG_TEXT_MAX - 1);
    text[6 + HED_CONFIG_TEXT_MAX - 1] = 'x';
    text[6 + HED_CONFIG_TEXT_MAX] = 0;
    assert_int_equal(parse_settings(text), HED_ELIMIT);
    assert_string_equal(why.text, "f.conf:1: trace: the value is longer than 4095 characters");
    text[6 + HED_CONFIG_TEXT_MAX] = 'x';
    assert_int_equal(parse_settings(text), HED_ELIMIT);
    assert_string_equal(why.text, "f.conf:1: the line is too long");
}

static void
zero_bytes_are_refused(void **state)
{
    hed_config_init(&config);
    assert_int_equal(hed_config_parse(&config, "gpu=null\ngpu=n\0x\n", 17, "f.conf", &why),
                     HED_EFORMAT);
    assert_string_equal(why.text, "f.conf:2: there is a zero byte in the line");
}

static void
unknown_variables_are_refused(void **state)
{
    char longest[200] = "HEDDLE_";

    assert_int_equal(load_settings("HEDDLE_COLOUR=red", NULL, NULL), HED_ENOTFOUND);
    assert_string_equal(
        why.text, "HEDDLE_COLOUR: there is no setting 'colour'; `heddle help settings` lists them");
    assert_int_equal(load_settings("HEDDLE_=x", NULL, NULL), HED_ENOTFOUND);
    assert_int_equal(load_settings("HEDDLE_TRACE_BUFFER=huge", NULL, NULL), HED_EINVAL);
    assert_string_equal(why.text, "HEDDLE_TRACE_BUFFER: trace_buffer: 'huge' is not a size such as "
                                  "64k or 1M");
    memset(longest + 7, 'X', 150);
    strncat(longest, "=1", 3);
    assert_int_equal(load_settings(longest, NULL, NULL), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "there is no such setting"));
    /* Variables that only look similar are not ours. */
    assert_int_equal(load_settings("HEDDLEX=1", "XHEDDLE_A=1", "HEDDLE"), 0);
    assert_int_equal(load_settings("HEDDLE_NO_EQUALS_SIGN", "", "="), 0);
}

static void
optimisations_are_turned_off_by_name(void **state)
{
    assert_int_equal(parse_settings(""), 0);
    assert_false(hed_config_perf_has(&config, "no_counter"));
    assert_int_equal(parse_settings("perf = no_counter"), 0);
    assert_true(hed_config_perf_has(&config, "no_counter"));
    assert_false(hed_config_perf_has(&config, "no_count"));
    assert_false(hed_config_perf_has(&config, ""));
}

static void
addresses_of_servers_are_places(void **state)
{
    static const char *const lines[] = {"gpu = shm:/s", "gpu = unix:/s", "gpu = tcp://h",
                                        "gpu = vm:", "gpu = vm:auto"};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(parse_settings(lines[i]), 0);
        assert_true(hed_config_gpu_is_address(config.gpu));
    }
    assert_int_equal(parse_settings("gpu = vm"), HED_EINVAL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_of_servers_are_places),
    cmocka_unit_test(optimisations_are_turned_off_by_name),
    cmocka_unit_test(defaults_are_as_described),
    cmocka_unit_test(file_is_read),
    cmocka_unit_test(environment_wins_over_file),
    cmocka_unit_test(machines_file_comes_last),
    cmocka_unit_test(secure_programs_read_the_machines_file_alone),
    cmocka_unit_test(machines_file_of_others_has_no_effect),
    cmocka_unit_test(xdg_and_home_are_looked_at),
    cmocka_unit_test(only_a_given_file_must_exist),
    cmocka_unit_test(a_default_file_that_cannot_be_read_is_a_warning),
    cmocka_unit_test(too_large_a_file_is_refused),
    cmocka_unit_test(bad_lines_are_refused_by_number),
    cmocka_unit_test(missing_profiles_are_reported),
    cmocka_unit_test(refused_values_change_nothing),
    cmocka_unit_test(long_lines_and_values_are_refused),
    cmocka_unit_test(zero_bytes_are_refused),
    cmocka_unit_test(unknown_variables_are_refused),
};

HED_UNIT_MAIN(tests)
