#!/bin/sh
# check_kept_device_code.sh NVCC FRESH KEPT: KEPT.fatbin is byte for byte what NVCC has made of the sources, FRESH, if NVCC
# is of the version in KEPT.nvcc. Prints what is wrong; exit status 1.
set -eu
nvcc=$1 fresh=$2 kept=$3
version=$("$nvcc" --version | sed -n 's/.*, \(V[0-9.]*\)$/\1/p')
if [ "$version" != "$(cat "$kept.nvcc")" ]; then
  echo "skipped: kept code is of nvcc $(cat "$kept.nvcc"), this is ${version:-another compiler}"
  exit
fi
cmp "$fresh" "$kept.fatbin" && exit
echo "$kept.fatbin has other code than nvcc makes of the sources: run misc/scripts/update_device_code.sh"
exit 1
