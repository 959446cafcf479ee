# The server's listener: its ledger, who may come in and how many.

heddle_unit_test(server_ledger SOURCES server_ledger.c LIBS heddle_server)
heddle_unit_test(server_limits SOURCES server_limits.c LIBS heddle_server)
heddle_unit_test(server_lanes SOURCES server_lanes.c LIBS heddle_server libheddle)
# A client that means harm, against a worker on the null backend.
heddle_unit_test(server_hostile
    SOURCES server_hostile.c ../fuzz/worker_play.c ${PROJECT_SOURCE_DIR}/src/registry.c
    LIBS heddle_server heddle_layers heddle_backends heddle_core heddle_trace heddle_put heddle_get
        heddle_handles)
