# Settings of programs that share a GPU.
heddle_fuzz_target(sched_words SOURCES sched_words.c LIBS heddle_sched CORPUS corpus/sched_words)
