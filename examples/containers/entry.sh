#!/bin/sh
# Runs a program under heddle, and heddle's own commands as they are: under `heddle run`, `heddle doctor` would
# report what `heddle run` has set.
case ${1-} in
    heddle) exec "$@" ;;
    *) exec heddle run -- "$@" ;;
esac
