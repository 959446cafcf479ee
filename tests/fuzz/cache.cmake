# cache_corpus.py makes the corpus.
heddle_fuzz_target(cache_archive SOURCES cache_archive.c LIBS heddle_cache
    CORPUS corpus/cache_archive)
