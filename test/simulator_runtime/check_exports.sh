#!/usr/bin/env bash
# Usage: check_exports.sh NM SIMULATED [REAL]. The simulated runtime exports CUDA's functions under CUDA's version,
# all of them known to NVIDIA's library, and its own under UCUDNN_SIMULATOR; nothing else.
set -euo pipefail

exports() { "$1" -D --defined-only "$2" | awk '$2 != "A" { print $3 }' | sort; }

ours="$(exports "$1" "$2")"
strangers="$(grep -vE '^cuda[A-Z][A-Za-z0-9]*@@libcudart\.so\.13$|^ucudnnSimulator[A-Za-z]+@@UCUDNN_SIMULATOR$|^_ZN6ucudnn9simulator.*@@UCUDNN_SIMULATOR$' <<<"$ours" || true)"
if [[ -n "$strangers" ]]; then
  echo "exported, but should not be:" && echo "$strangers" && exit 1
fi
[[ "$(grep -c '@@libcudart\.so\.13$' <<<"$ours")" -ge 70 ]] || { echo "CUDA functions are missing"; exit 1; }

if [[ -e "${3:-}" ]]; then
  unknown="$(comm -23 <(grep '@@libcudart' <<<"$ours") <(exports "$1" "$3"))"
  if [[ -n "$unknown" ]]; then
    echo "not in NVIDIA's library:" && echo "$unknown" && exit 1
  fi
fi
