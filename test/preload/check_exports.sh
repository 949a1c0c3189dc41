#!/bin/sh
# check_exports.sh NM READELF LIBRARY FUNCTIONS_H BACKEND_H: libucudnn_preload.so exports cudnnCreate, cudnnDestroy, what the two headers
# list, what puts plans into CUDA graphs and asks for their workspace, dlsym, and cudaDeviceSynchronize, without a version, and nothing else; and it needs nothing but the
# C library. Prints what is wrong, one line each; exit status 1.
set -eu
nm=$1 readelf=$2 library=$3 functions=$4 backend=$5
failures=0
say() { echo "$1"; failures=$((failures + 1)); }

exported=$("$nm" --dynamic --defined-only --format=posix "$library" | awk '{ print $1 }')
listed=$(cat "$functions" "$backend" | grep -o 'X([A-Z][A-Za-z0-9_]*,' | sed 's/X(\(.*\),/cudnn\1/')
echo "$listed" | grep -qx cudnnConvolutionForward || say "no cudnnConvolutionForward in $functions: it was not read"
expected="cudnnCreate cudnnDestroy cudnnBackendPopulateCudaGraph cudnnBackendUpdateCudaGraph
  cudnnGetExecutionPlanWorkspaceSize cudaDeviceSynchronize dlsym $listed"
for symbol in $expected; do
  echo "$exported" | grep -qx -- "$symbol" || say "$symbol is missing"
done
for symbol in $exported; do
  echo "$expected" | tr ' ' '\n' | grep -qx -- "$symbol" || say "$symbol is exported"
done
for needed in $("$readelf" --dynamic --wide "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'); do
  case $needed in
    libc.so.* | libdl.so.* | ld-linux*) ;;
    *) say "$needed is needed" ;;
  esac
done
[ "$failures" -eq 0 ]
