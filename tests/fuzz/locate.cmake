# What is read to find libraries. locate_corpus.py makes the corpora.
heddle_fuzz_target(locate_elf SOURCES locate_elf.c LIBS heddle_locate CORPUS corpus/locate_elf)
heddle_fuzz_target(locate_ldcache SOURCES locate_ldcache.c LIBS heddle_locate
    CORPUS corpus/locate_ldcache)
