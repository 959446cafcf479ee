# trace_corpus.py makes the corpus.
heddle_fuzz_target(trace_read SOURCES trace_read.c LIBS heddle_trace CORPUS corpus/trace_read)

# The parts of the command that tell what is in a trace; the command is not a library.
if(TARGET heddle)
    get_target_property(cli heddle SOURCE_DIR)
    set(parts words.c)
    foreach(part count folded gpu gpu_print guard idle link map page page_write range stats table
                 util)
        list(APPEND parts trace/${part}.c)
    endforeach()
    list(TRANSFORM parts PREPEND ${cli}/)
    get_target_property(cli_made heddle BINARY_DIR)
    set_property(SOURCE ${cli_made}/page_text.c PROPERTY GENERATED TRUE)
    heddle_fuzz_target(trace_tell SOURCES trace_tell.c ${parts} ${cli_made}/page_text.c
        LIBS heddle_trace heddle_core heddle_names CORPUS corpus/trace_read)
    add_dependencies(fuzz_trace_tell heddle)
endif()
