#!/bin/sh
# check_names.sh NM LIBRARY NAMES LEFT: each name of cuDNN's that libucudnn_preload.so exports is recorded (NAMES); each recorded one
# that makes handles, convolutions or plans is exported, or is in LEFT, which says why it is not. Prints what is wrong, one
# line each; exit status 1.
set -eu
nm=$1 library=$2 names=$3 left=$4
failures=0
say() { echo "$1"; failures=$((failures + 1)); }
first_words() { sed 's/#.*//' "$1" | awk 'NF { print $1 }'; }

exported=$("$nm" --dynamic --defined-only --format=posix "$library" | awk '$1 ~ /^cudnn/ { print $1 }')
recorded=$(first_words "$names")
concerned=$(echo "$recorded" | grep -E '^cudnn(Create|Destroy)$|Conv|Backend|Plan')
kept=$(first_words "$left")
[ -n "$exported" ] && [ -n "$concerned" ] || say "nothing was read"
for name in $exported; do
  echo "$recorded" | grep -qx -- "$name" || say "$name is exported, but no cuDNN has it"
done
for name in $concerned; do
  echo "$exported" | grep -qx -- "$name" || echo "$kept" | grep -qx -- "$name" || say "$name is neither exported nor left"
done
for name in $kept; do
  echo "$concerned" | grep -qx -- "$name" || say "$name is left, but no cuDNN has it"
  echo "$exported" | grep -qx -- "$name" && say "$name is left, and exported"
done
[ "$failures" -eq 0 ]
