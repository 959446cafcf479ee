heddle_fuzz_target(snap_talk SOURCES snap_talk.c LIBS heddle_snap CORPUS corpus/snap_talk)
# snap_corpus.py makes the corpus.
heddle_fuzz_target(snap_read SOURCES snap_read.c snap_play.c LIBS heddle_snap
    CORPUS corpus/snap_read)
heddle_fuzz_target(snap_patch SOURCES snap_patch.c snap_play.c LIBS heddle_snap
    CORPUS corpus/snap_patch)
