# The loader of compiled kernels. load_corpus.py makes the corpus.
heddle_fuzz_target(ptx_load SOURCES ptx_load.c LIBS heddle_ptx CORPUS corpus/ptx_load)

# Kernels in their address sandbox. ThreadSanitizer does not let a process choose its addresses.
if(TARGET heddle_cpu AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
    heddle_fuzz_target(ptx_confined SOURCES ptx_confined.c LIBS heddle_cpu heddle_core
        CORPUS corpus/ptx_confined)
endif()
