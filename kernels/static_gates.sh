#!/bin/sh
# static_gates.py, from where Bazel starts tests and tools: the first argument is the script's place in the runfiles.
exec python3 "$@"
