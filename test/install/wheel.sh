#!/usr/bin/env bash
# Builds the wheel, installs it into a clean virtual environment, and runs programs with it on the simulator:
#   wheel.sh WHERE BUILD SIMULATOR PLUGIN PROGRAM NM READELF FORTIFIED LIBRARIES SONAME [CONFIG_SETTING...]
# WHERE: a folder for environments and the wheel; BUILD: for CMake; PLUGIN, PROGRAM: test/preload's; NM to SONAME: as
# check_package.sh has them. The settings are scikit-build-core's.
set -euo pipefail
where=$1 build=$2 simulator=$3 plugin=$4 program=$5 nm=$6 readelf=$7 fortified=$8 libraries=$9 soname=${10}
shift 10
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset LD_LIBRARY_PATH PYTHONPATH

# Without a network or Python's venv there is nothing to build with.
rm -rf "$where"
mkdir -p "$where"
python3 -m venv "$where/builder" >"$where/log" 2>&1 || { echo "skipped: no python3 with venv"; exit; }
"$where/builder/bin/pip" install -q --retries 1 --timeout 20 scikit-build-core >>"$where/log" 2>&1 ||
  { echo "skipped: pip can't install scikit-build-core"; exit; }
settings=()
for setting; do settings+=(-C "$setting"); done
"$where/builder/bin/pip" wheel -v --no-deps --no-build-isolation --no-index -w "$where" -C "build-dir=$build" \
  "${settings[@]}" "$root/misc/python" >>"$where/log" 2>&1 || { cat "$where/log"; exit 1; }
python3 -m venv "$where/clean"
"$where/clean/bin/pip" install -q --no-index "$where"/ucudnn-*.whl

failures=0
fail() { echo "$1"; failures=$((failures + 1)); }
package=$(echo "$where"/clean/lib/python3*/site-packages/ucudnn)
"$here/check_package.sh" "$nm" "$readelf" "$fortified" "$libraries" "$soname" "$package" || fail "the package: see above"

version=$(basename "$where"/ucudnn-*.whl | cut -d- -f2)
command=$where/clean/bin/ucudnn
expect() {  # expect STATUS TEXT COMMAND...
  local status=0 output
  output=$("${@:3}" 2>&1) || status=$?
  [[ $status == "$1" && $output == *"$2"* ]] || fail "status $status, expected $1; output '$output', expected '$2': ${*:3}"
}
export UCUDNN_KERNELS=legacy UCUDNN_SIMULATOR_ARITHMETIC=off UCUDNN_SIMULATOR_STRICT=abort XDG_CACHE_HOME=$where/cache
expect 0 "LD_PRELOAD=$package/lib/libucudnn_preload.so" env -i "$command" run env
expect 0 "workspace" env UCUDNN_DATABASE="$where/database" LD_LIBRARY_PATH="$simulator" \
  "$command" run --workspace-limit 2MiB --trace "$where/plain" "$program" find "$where/results"
grep -q $'\tsplit' "$where/plain" || fail "the plain program's calls were not split"
[[ $(head -c 6 "$where/database") == SQLite ]] || fail "there is no database"
expect 0 "of 64 MiB divided among 3 convolutions" env LD_LIBRARY_PATH="$simulator" \
  "$command" plan "$root/misc/layers/alexnet.csv" --layers conv2 --total-workspace 64MiB
expect 0 "as they should be" "$command" run --trace "$where/trace" "$where/clean/bin/python" "$here/wheel.py" \
  "$plugin" "$where/trace" "$simulator"/libcudart.so.1? "$simulator/libcudnn.so.9"
[[ $(head -c 6 "$where"/cache/ucudnn/*.db) == SQLite ]] || fail "nothing is kept that nobody asked for"
expect 0 "ucudnn $version" "$where/clean/bin/python" -m ucudnn --version
expect 0 "$version" "$where/clean/bin/python" -c 'import ucudnn; print(ucudnn.__version__)'
expect 0 "NOTICES.txt" ls "$package"
expect 1 "does not run under" "$where/clean/bin/python" -c 'import ucudnn; ucudnn.statistics()'
((failures == 0))
