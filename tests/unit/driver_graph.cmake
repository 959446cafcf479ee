# Graphs and captures, on a machine made of plain memory.

heddle_unit_test(driver_graph SOURCES driver_graph.c driver_fake.c LIBS heddle_driver heddle_core)
heddle_unit_test(driver_far_objects SOURCES driver_far_objects.c driver_fake.c
    LIBS heddle_driver heddle_core)

# The worker's side of them. Its files are named, so that the test can stand in for the others.
set(server ${PROJECT_SOURCE_DIR}/src/server)
heddle_unit_test(server_objects
    SOURCES server_objects.c ${server}/graph.c ${server}/array.c ${server}/names.c
            ${server}/ledger.c
    LIBS heddle_base)
