#!/bin/sh
# check_links.sh FOLDER: what the installed documents link to is installed too, but the 4 MB of misc/results. Prints what is
# missing, one line each; exit status 1.
set -eu
cd "$1"
failures=0
for document in *.md misc/docs/*.md; do
  for link in $(grep -o '](\([^)]*\))' "$document" | sed 's/](//; s/)//; s/#.*//'); do
    case $link in http* | ../results) continue ;; esac
    [ -e "$(dirname "$document")/$link" ] || { echo "$document links to $link"; failures=$((failures + 1)); }
  done
done
[ "$failures" -eq 0 ]
