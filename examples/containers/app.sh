#!/bin/sh
# What the program's container does: waits for the server, then runs a CUDA program on the server's GPU. app.py
# stands for your program. The wait is for engines that ignore `depends_on: condition: service_healthy`.
set -e
n=0
until heddle devices; do
    n=$((n + 1))
    [ $n -lt 60 ] || { echo "$HEDDLE_GPU does not answer" >&2; exit 1; }
    sleep 1
done
exec heddle run -- python3 "$(dirname "$0")/app.py"
