heddle_fuzz_target(snap_talk SOURCES snap_talk.c LIBS heddle_snap CORPUS corpus/snap_talk)
