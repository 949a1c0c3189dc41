#!/bin/sh
# check_cudnn_symbols.sh NM OBJECT...: of the library's objects none but cuda/cudnn.cpp's refers to a function of cuDNN.
set -eu
nm=$1
shift
table=0 failures=0
for object; do
  names=$("$nm" --undefined-only --format=posix "$object" | awk '$1 ~ /^cudnn[A-Z]/ { printf "%s ", $1 }')
  [ -n "$names" ] || continue
  case $object in
    */cuda/*/cudnn.cpp.o) table=1 ;;
    *) echo "$object calls $names"; failures=1 ;;
  esac
done
[ "$table" = 1 ] || { echo "the table's object is not among them"; exit 1; }
exit "$failures"
