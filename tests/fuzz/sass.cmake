# The cubins of the room fatbin.
heddle_fuzz_target(sass SOURCES sass.c LIBS heddle_sass CORPUS corpus/cubin)
