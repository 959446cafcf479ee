#!/bin/sh
# What the program's container does: waits for the server, then runs a CUDA program on the server's GPU. app.py
# stands for your program.
set -e
socket=${HEDDLE_GPU#shm:}
n=0
until [ -S "$socket" ]; do
    n=$((n + 1))
    [ $n -lt 600 ] || { echo "there is no server at $socket" >&2; exit 1; }
    sleep 0.1
done
heddle devices
exec heddle run -- python3 "$(dirname "$0")/app.py"
