# Settings, and the encoding of calls.
heddle_fuzz_target(config SOURCES config.c LIBS heddle_core CORPUS corpus/config)
heddle_fuzz_target(wire_get SOURCES wire_get.c LIBS heddle_put heddle_get heddle_base
    CORPUS corpus/wire_get)
