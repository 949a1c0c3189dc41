#!/usr/bin/env bash
# check_package.sh NM READELF FORTIFIED LIBRARIES SONAME PACKAGE: what the Python package's folder holds runs elsewhere: it needs nothing of the
# build machine, exports nothing of its dependencies, and what the libraries in the folder LIBRARIES export, which are checked by
# themselves. Prints what is wrong, one line each; exit status 1.
set -euo pipefail
nm=$1 readelf=$2 fortified=$3 libraries=$4 soname=$5 package=$6
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failures=0
say() { echo "$1"; failures=$((failures + 1)); }
# Without absolute symbols, which are version tags.
exported() { "$nm" --dynamic --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort; }

for library in "$soname" libucudnn_preload.so; do
  different=$(diff <(exported "$libraries/$library") <(exported "$package/lib/$library") | grep '^[<>]' || true)
  [[ -z $different ]] || say "$library exports otherwise: $different"
done
for program in "$package"/bin/*; do
  symbols=$(exported "$program")
  [[ -z $symbols ]] || say "$program exports ${symbols%%$'\n'*}"
done
for file in "$package"/{lib,bin}/*; do
  "$here/check_hardening.sh" "$readelf" "$fortified" "$file" || failures=$((failures + 1))
  dynamic=$("$readelf" --dynamic --wide "$file")
  for needed in $(sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' <<<"$dynamic"); do
    case $needed in
      "$soname" | libcudnn.so.9 | libcudart.so.* | libc.so.* | libm.so.* | libgcc_s.so.1 | ld-linux*) ;;
      *) say "$file needs $needed" ;;
    esac
  done
  # Ubuntu 22.04, Debian 12 and RHEL 9 have it.
  newest=$(grep -o 'GLIBC_2\.[0-9]*' <<<"$("$readelf" --version-info --wide "$file")" | sort -uV | tail -1)
  ((${newest#GLIBC_2.} <= 34)) || say "$file needs $newest"
  for folder in $(sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p' <<<"$dynamic" | tr : ' '); do
    [[ $folder == '$ORIGIN/'* ]] || say "RUNPATH $folder is of this machine"
  done
done
((failures == 0))
