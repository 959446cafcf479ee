# The loader of compiled kernels. load_corpus.py makes the corpus.
heddle_fuzz_target(ptx_load SOURCES ptx_load.c LIBS heddle_ptx CORPUS corpus/ptx_load)
