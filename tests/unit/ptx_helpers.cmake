# What compiled kernels call beside their own code.
heddle_unit_test(ptx_helpers SOURCES ptx_helpers.c LIBS heddle_ptx m)
