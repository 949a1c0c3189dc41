#!/bin/sh
# check_kernels_wait.sh FILE...: each kernel first waits for the kernels before it, because src/cuda/dependent_launch.hpp may
# launch it before they have ended: no simulator and few runs on a GPU would show the race. Prints what is wrong; exit
# status 1.
set -eu
awk '
  /^[ \t]*\/\// { next }
  /__global__/ { isKernel = 1; ++kernels; line = $0 }
  isKernel && /{$/ {
    getline
    if ($0 !~ /^ *waitForInputs\(\);$/) { print FILENAME ": does not wait: " line; bad = 1 }
    isKernel = 0
  }
  END { if (kernels == 0) { print FILENAME " has no kernel"; bad = 1 } exit bad }
' "$@"
