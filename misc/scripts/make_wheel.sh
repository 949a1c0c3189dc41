#!/usr/bin/env bash
# Makes the wheel for a package index: make_wheel.sh FOLDER [PIP_OPTION...]. Needs what CONTRIBUTING.md says of the wheel, and
# auditwheel and patchelf on PATH. auditwheel tags it with the oldest glibc that it runs with, and fails on other libraries
# than the program brings: NVIDIA's stay out.
set -euo pipefail
(($# > 0)) || { echo "usage: make_wheel.sh FOLDER [PIP_OPTION...]" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 -m pip wheel --no-deps -w "$made" "${@:2}" "$root/misc/python"
auditwheel repair --only-plat --exclude 'libcudnn.so.*' --exclude 'libcudart.so.*' -w "$1" "$made"/ucudnn-*.whl
