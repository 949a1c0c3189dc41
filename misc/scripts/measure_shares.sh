#!/bin/bash
# measure_shares.sh DEVICES OUT [ROW...]: what several GPUs of one host gain by shares of a mini-batch, for the tables of
# misc/docs/RESULTS.md. DEVICES: 2 or 4. Writes OUT/ROW.json. Without ROWs all that begin within BUDGET seconds (270).
# UCUDNN names the command (build/bin/ucudnn). Rows of PyTorch need torch, torchvision and torchrun.
set -u
cd "$(dirname "$0")/../.."
devices=$1 out=$2
shift 2
wanted=" $* "
case $devices in
  2) list=0,1 parts=132,64 ;;
  4) list=0,1,2,3 parts=132,96,64,32 ;;
  *) echo "2 or 4 devices" >&2; exit 2 ;;
esac
ucudnn=${UCUDNN:-build/bin/ucudnn}
budget=${BUDGET:-270}
mkdir -p "$out"
export UCUDNN_DATABASE=${UCUDNN_DATABASE:-$out/shares.db} UCUDNN_LOG_LEVEL=${UCUDNN_LOG_LEVEL:-warn}
export PYTHONPATH=$PWD/misc/python${PYTHONPATH:+:$PYTHONPATH}
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
# NCCL comes with PyTorch's packages.
nccl=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0] + "/nccl/lib")' 2>/dev/null)
[ -d "$nccl" ] && export LD_LIBRARY_PATH=$nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# row NAME COMMAND...: whether it is wanted, and there is time.
row() {
  local name=$1
  shift
  case $wanted in
    "  ") [ "$SECONDS" -lt "$budget" ] || { echo "== $name: no time left"; return; } ;;
    *" $name "*) ;;
    *) return ;;
  esac
  local begin=$SECONDS
  echo "== $name"
  timeout "${LIMIT:-90}" "$@" 2>&1 | grep -v -e Warning -e '^$' | tail -15
  [ "${PIPESTATUS[0]}" -eq 0 ] || { echo "   failed"; [ -s "$out/$name.json" ] || rm -f "$out/$name.json"; }
  echo "   $((SECONDS - begin)) s"
}
bench() {
  local name=$1 network=$2
  shift 2
  row "$name" "$ucudnn" bench "misc/layers/$network.csv" --data-parallel --devices "$list" --batch-size 256 --repeats 3 \
    --json "$out/$name.json" "$@"
}
pytorch() {
  local name=$1
  shift
  row "$name" python3 -m torch.distributed.run --nproc-per-node "$devices" misc/examples/ddp_shares.py --steps 10 \
    --json "$out/$name.json" "$@"
}

for network in resnet18 vgg16; do
  bench "shares${devices}_${network}_equal" $network
  bench "shares${devices}_${network}_unequal" $network --multiprocessors $parts
done
pytorch "shares${devices}_pytorch_unequal" --multiprocessors $parts --math tf32
if [ "$devices" = 2 ]; then
  bench shares2_alexnet_limits_legacy alexnet --limit 64MiB,8MiB --kernels legacy
  bench shares2_alexnet_limits alexnet --limit 64MiB,8MiB
  bench shares2_resnet18_memory resnet18 --memory 256,80
fi
bench "shares${devices}_resnet18_unequal_fma" resnet18 --multiprocessors $parts --math fma
pytorch "shares${devices}_pytorch_unequal_fma" --multiprocessors $parts --math fma
bench "shares${devices}_vgg16_unequal_fma" vgg16 --multiprocessors $parts --math fma
