# The corpus is small modules by hand, one a family of instructions.
heddle_fuzz_target(ptx_parse SOURCES ptx_parse.c LIBS heddle_ptx CORPUS corpus/ptx_parse)
