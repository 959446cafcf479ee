# fatbin_corpus.py makes the corpora.
heddle_fuzz_target(fatbin SOURCES fatbin.c LIBS heddle_fatbin CORPUS corpus/fatbin)
heddle_fuzz_target(cubin SOURCES cubin.c LIBS heddle_fatbin CORPUS corpus/cubin)
heddle_fuzz_target(fatbin_find SOURCES fatbin_find.c LIBS heddle_fatbin CORPUS corpus/fatbin_find)
