# Code on a worker: what is sent of an image, what is kept, and what handlers do not believe.

heddle_unit_test(base_hash SOURCES base_hash.c LIBS heddle_base)
heddle_unit_test(server_images SOURCES server_images.c LIBS heddle_server libheddle)
heddle_unit_test(server_code SOURCES server_code.c LIBS heddle_server libheddle)
heddle_unit_test(remote_image
    SOURCES remote_image.c ${PROJECT_SOURCE_DIR}/src/backends/remote/image.c
    LIBS heddle_driver heddle_core heddle_wire)
heddle_unit_test(server_required SOURCES server_required.c LIBS heddle_server libheddle)
heddle_unit_test(server_library SOURCES server_library.c LIBS heddle_server libheddle)
heddle_unit_test(server_whole SOURCES server_whole.c LIBS heddle_server libheddle
    ENV HED_CORPUS=${PROJECT_SOURCE_DIR}/tests/fuzz/corpus)
