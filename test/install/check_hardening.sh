#!/bin/sh
# check_hardening.sh READELF FORTIFIED FILE: what is built in against exploits, and that the loader looks for libraries only in
# folders that are named in full. FORTIFIED: 1, or 0 for a build without optimization. Prints what is wrong, one line each; exit
# status 1.
set -eu
readelf=$1 fortified=$2 file=$3
headers=$("$readelf" --file-header --program-headers --wide "$file")
dynamic=$("$readelf" --dynamic --wide "$file")
needed=$("$readelf" --dyn-syms --wide "$file" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }')
failures=0
say() { echo "$1"; failures=$((failures + 1)); }

echo "$headers" | grep -q 'Type: *DYN' || say "it is loaded at a fixed address"
echo "$headers" | grep -q GNU_RELRO || say "no RELRO"
echo "$dynamic" | grep -Eq 'BIND_NOW|FLAGS_1.*NOW' || say "it is bound lazily: RELRO is not full"
echo "$headers" | grep GNU_STACK | grep -q ' RW ' || say "the stack is executable"
echo "$headers" | grep LOAD | grep -q ' RWE ' && say "memory is writable and executable"
echo "$dynamic" | grep -q TEXTREL && say "code is changed when it is loaded"
echo "$needed" | grep -qx __stack_chk_fail || say "no stack protector"
if [ "$fortified" = 1 ]; then
  echo "$needed" | grep -v __stack_chk_fail | grep -q '_chk$' || say "no fortified function"
fi
echo "$dynamic" | grep -q '(RPATH)' && say "RPATH goes before LD_LIBRARY_PATH"
# An empty element is the current folder.
runpath=$(echo "$dynamic" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
if [ -n "$runpath" ]; then
  case :$runpath: in *::*) say "RUNPATH '$runpath' has an empty element" ;; esac
fi
for folder in $(echo "$runpath" | tr : ' '); do
  case $folder in
    /* | '$ORIGIN' | '$ORIGIN'/*) ;;
    *) say "RUNPATH names $folder" ;;
  esac
done
[ "$failures" -eq 0 ]
