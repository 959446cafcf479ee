# The corpus is made by trace_corpus.py.
heddle_fuzz_target(trace_read SOURCES trace_read.c LIBS heddle_trace CORPUS corpus/trace_read)
