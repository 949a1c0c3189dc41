#!/bin/sh
# build_by_hand.sh HOW PREFIX LIBDIR EXAMPLES OUT CC CXX CUDA_INCLUDE CUDA_LIB...: builds the examples in C++ and C into OUT
# without CMake. HOW: pkg-config, or flags (plain -lucudnn, as frameworks with their own makefiles link it).
set -eu
how=$1 prefix=$2 libdir=$3 examples=$4 out=$5 cc=$6 cxx=$7 cuda_include=$8
shift 8
mkdir -p "$out"
case $how in
  pkg-config)
    PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags --libs ucudnn) ;;
  flags)
    flags="-I$prefix/include -I$cuda_include -L$prefix/$libdir -lucudnn"
    for directory; do flags="$flags -L$directory"; done
    flags="$flags -lcudnn -lcudart" ;;
esac
# Unquoted: the flags are words.
"$cxx" "$examples/convolution.cpp" -o "$out/convolution" $flags
"$cc" "$examples/convolution.c" -o "$out/convolution_c" $flags
