# Fat binaries and cubins. The fixtures are the fuzz targets' corpora, made by fatbin_corpus.py.
foreach(module choose cubin find glance read)
    heddle_unit_test(fatbin_${module} SOURCES fatbin_${module}.c LIBS heddle_fatbin
        ENV HED_CORPUS=${PROJECT_SOURCE_DIR}/tests/fuzz/corpus)
endforeach()
