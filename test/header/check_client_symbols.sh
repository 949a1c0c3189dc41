#!/bin/sh
# check_client_symbols.sh NM OBJECT: a client's object file must reference μ-cuDNN's function for each of cuDNN's that μ-cuDNN
# answers, and none of those of cuDNN. Prints what is wrong, one line each; exit status 1.
set -eu
nm=$1 object=$2
undefined=$("$nm" --undefined-only --format=posix "$object" | cut -d' ' -f1)
failures=0
say() { echo "$1"; failures=$((failures + 1)); }

functions="Create Destroy ConvolutionBiasActivationForward
  AddTensor ConvolutionBackwardBias ActivationForward ActivationBackward
  PoolingForward PoolingBackward SoftmaxForward SoftmaxBackward"
for operation in Forward BackwardData BackwardFilter; do
  functions="$functions Convolution$operation
    GetConvolution${operation}Algorithm GetConvolution${operation}Algorithm_v7
    FindConvolution${operation}Algorithm FindConvolution${operation}AlgorithmEx
    GetConvolution${operation}WorkspaceSize"
done
for function in $functions; do
  if echo "$undefined" | grep -qx "cudnn$function"; then
    say "cudnn$function bypasses u-cuDNN"
  fi
  if ! echo "$undefined" | grep -qx "ucudnn$function"; then
    say "ucudnn$function is not referenced"
  fi
done
[ "$failures" -eq 0 ]
