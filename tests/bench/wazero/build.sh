#!/usr/bin/env bash
# Builds it with Go into the cache, keyed by their sources, and prints the program's path. Seconds from nothing.
set -euo pipefail
me=wazero
. "$(dirname "$0")/../../control-plane/lib.sh"
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$cache/bench/$(cd "$source" && cat build.sh go.mod go.sum ./*.go | sha256sum | cut -c1-16)-$(uname -m)
program=$folder/wazero

if [ ! -x "$program" ]; then
  command -v go >/dev/null || die "Go (1.21 or later) builds this part of the bench: https://go.dev/dl"
  mkdir -p "$folder"
  draft=$(mktemp "$folder/.draft.XXXXXX")
  trap 'rm -f "$draft"' EXIT
  say "building wazero"
  (cd "$source" && GO111MODULE=on GOWORK=off GOFLAGS=-mod=readonly GOTOOLCHAIN=auto GOOS='' GOARCH='' \
    go build -trimpath -ldflags "-s -w" -o "$draft" .) >&2
  mv "$draft" "$program" # only a whole program has its final name
fi
echo "$program"
