# The corpus consists of small modules made by hand, one for each family of instructions.
heddle_fuzz_target(ptx_parse SOURCES ptx_parse.c LIBS heddle_ptx CORPUS corpus/ptx_parse)
