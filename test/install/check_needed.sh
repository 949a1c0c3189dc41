#!/bin/sh
# check_needed.sh READELF SONAME LIBRARY: it has this SONAME, and that nothing is needed but what is expected, whatever its version.
set -eu
readelf=$1 expected=$2 library=$3
dynamic=$("$readelf" --dynamic --wide "$library")
values() { echo "$dynamic" | sed -n "s/.*($1).*\[\(.*\)\].*/\1/p"; }
failures=0
say() { echo "$1"; failures=$((failures + 1)); }

soname=$(values SONAME)
[ "$soname" = "$expected" ] || say "SONAME is '$soname', not $expected"
needed=$(values NEEDED)
for library in $needed; do
  case $library in
    libcudnn.so.* | libcudart.so.*) ;;
    libsqlite3.so.* | libglpk.so.*) ;;
    libstdc++.so.* | libgcc_s.so.* | libm.so.* | libc.so.* | libpthread.so.* | libdl.so.* | ld-linux*) ;;
    *) say "$library is needed" ;;
  esac
done
for expected in libcudnn.so. libcudart.so.; do
  echo "$needed" | grep -q "^$expected" || say "$expected* is not needed"
done
[ "$failures" -eq 0 ]
