# trace_corpus.py makes the corpus.
heddle_fuzz_target(trace_read SOURCES trace_read.c LIBS heddle_trace CORPUS corpus/trace_read)
