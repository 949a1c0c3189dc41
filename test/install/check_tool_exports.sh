#!/bin/sh
# check_tool_exports.sh NM TOOL: the program exports none of our names, nor any that a library of its process would take for
# cuDNN's or CUDA's. Prints those that it does; exit status 1.
set -eu
if "$1" --dynamic --defined-only --format=posix "$2" | grep -E '^(u?cudnn|cuda|cu[A-Z]|_ZN6ucudnn|_ZNK6ucudnn)'; then exit 1; fi
