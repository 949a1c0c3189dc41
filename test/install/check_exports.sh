#!/bin/sh
# check_exports.sh NM LIBRARY LIBCUDNN CC INCLUDE...: libucudnn.so exports every function that the headers declare, and nothing
# that does not begin with ucudnn; above all no name of cuDNN's own. Prints what is wrong, one line each; exit status 1.
set -eu
nm=$1 library=$2 cudnn=$3 cc=$4
shift 4
# Names without their version; absolute symbols (A) are version tags.
exported() { "$nm" --dynamic --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }'; }
failures=0
say() { echo "$1"; failures=$((failures + 1)); }

ours=$(exported "$library")
theirs=$(exported "$cudnn")
# As the preprocessor leaves them: UCUDNN_API's attribute, the return type, the name, a parenthesis.
flags=
for directory; do flags="$flags -I$directory"; done
declared=$(echo '#include <ucudnn/ucudnn.h>' | "$cc" -E -P -x c $flags - | tr '\n' ' ' |
  grep -o 'visibility("default")))[^(;]*(' | sed 's/ *($//; s/.*[ *]//')
echo "$theirs" | grep -qx cudnnCreate || say "$cudnn exports no cudnnCreate: this is not cuDNN"
echo "$declared" | grep -qx ucudnnCreate || say "no ucudnnCreate in the headers: they were not read"
for symbol in $declared; do
  echo "$ours" | grep -qx -- "$symbol" || say "$symbol is declared but not exported"
done
for symbol in $ours; do
  case $symbol in
    ucudnn*) ;;
    *)
      if echo "$theirs" | grep -qx -- "$symbol"; then
        say "$symbol is cuDNN's own name"
      else
        say "$symbol is exported"
      fi ;;
  esac
done
[ "$failures" -eq 0 ]
