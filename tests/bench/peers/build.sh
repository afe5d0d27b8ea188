#!/usr/bin/env bash
# Builds the peers with Go into the cache, keyed by their sources, and prints the program's path. A minute from nothing.
set -euo pipefail
me=peers
. "$(dirname "$0")/../../control-plane/lib.sh"
peers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$cache/bench/$(cd "$peers" && cat build.sh go.mod go.sum ./*.go | sha256sum | cut -c1-16)-$(uname -m)
program=$folder/peer

if [ ! -x "$program" ]; then
  command -v go >/dev/null || die "Go (1.21 or later) builds the peers of the bench: https://go.dev/dl"
  mkdir -p "$folder"
  draft=$(mktemp "$folder/.draft.XXXXXX")
  trap 'rm -f "$draft"' EXIT
  say "building the peers"
  (cd "$peers" && GO111MODULE=on GOWORK=off GOFLAGS=-mod=readonly GOTOOLCHAIN=auto GOOS='' GOARCH='' \
    go build -trimpath -ldflags "-s -w" -o "$draft" .) >&2
  mv "$draft" "$program" # only a whole program has its final name
fi
echo "$program"
