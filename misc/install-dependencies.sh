#!/usr/bin/env bash
# Installs what the build needs and Debian 12 and Ubuntu 24.04 have as packages, and PACKAGE... besides:
#   misc/install-dependencies.sh [PACKAGE...]
# CUDA and cuDNN are NVIDIA's, and no part of it. Asks for nothing and does nothing when all is installed.
set -euo pipefail

packages=(cmake g++ ninja-build git pkg-config libsqlite3-dev libglpk-dev libspdlog-dev libfmt-dev libcli11-dev
          nlohmann-json3-dev libgtest-dev libbenchmark-dev "$@")
missing=()
command -v dpkg-query >/dev/null || {
  echo "misc/install-dependencies.sh: no apt here; CMake says what is missing of: ${packages[*]}" >&2
  packages=()
}
for package in ${packages[@]+"${packages[@]}"}; do
  [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == 'install ok installed' ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      echo "misc/install-dependencies.sh: run as root: apt-get install ${missing[*]}" >&2
      exit 1
    }
    root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
