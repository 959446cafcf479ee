/* Fuzz target: the text of a settings file. Settings that are accepted can be written again, one by
 * one, and give the same settings.
 */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "core/config.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hed_config config;
    static struct hed_config again;
    struct hed_why why = {""};

    hed_config_init(&config);

    const int err = hed_config_parse(&config, (const char *)data, size, "input", &why);

    /* A refusal has a reason that names the line. */
    must(err <= 0);
    must(err == 0 || strncmp(why.text, "input:", 6) == 0);
    must(err == 0 || hed_config_parse(&config, (const char *)data, size, "input", NULL) == err);

    /* In any case, texts are terminated and values are in range. */
    must(strnlen(config.trace, sizeof config.trace) < sizeof config.trace);
    must(config.trace_buffer >= 65536 && config.trace_buffer <= 16 << 20);
    must(strcmp(config.trace_full, "block") == 0 || strcmp(config.trace_full, "drop") == 0);
    must(strcmp(config.gpu, "gpu") == 0 || strcmp(config.gpu, "null") == 0 ||
         strcmp(config.gpu, "auto") == 0 || hed_config_gpu_is(config.gpu, "cpu") ||
         hed_config_gpu_is_address(config.gpu));

    hed_config_init(&again);
    must(hed_config_set(&again, "trace", config.trace, NULL) == 0);
    must(hed_config_set(&again, "layers", config.layers, NULL) == 0);
    must(strcmp(again.trace, config.trace) == 0 && strcmp(again.layers, config.layers) == 0);
    return 0;
}
