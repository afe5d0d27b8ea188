#!/usr/bin/env bash
# Builds a registry, and what people push and sign with, from the Go module proxy and (wkg) crates.io into the cache outside
# the checkout, and prints the folder. Some 10 minutes on two cores from nothing, no time at all when they are there.
# usage: build.sh [NAME…]   (default: registry oras cosign wkg)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${KEELSON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson}
programs=$cache/registry/$(cat "$here"/*/go.mod | sha256sum | cut -c1-16)-$(uname -m)
wkg=0.16.1
declare -A package=(
  [registry]=github.com/distribution/distribution/v3/cmd/registry
  [oras]=oras.land/oras/cmd/oras
  [cosign]=github.com/sigstore/cosign/v3/cmd/cosign
)
[ $# -gt 0 ] || set -- registry oras cosign wkg
mkdir -p "$programs"
build_wkg() { # how fast it runs matters to nobody
  local root=$programs/.draft.wkg.$$
  (cd / && env -u CARGO_TARGET_DIR -u RUSTFLAGS -u MAKEFLAGS -u MFLAGS CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo install wkg --version "=$wkg" --locked --quiet --root "$root") >&2
  mv "$root/bin/wkg" "$programs/wkg-$wkg"
  rm -rf "$root"
  ln -sfn "wkg-$wkg" "$programs/wkg"
}
for name in "$@"; do
  if [ "$name" = wkg ]; then
    [ "$(readlink "$programs/wkg" 2>/dev/null)" = "wkg-$wkg" ] && [ -x "$programs/wkg" ] && continue
    began=$SECONDS
    echo "registry: building wkg" >&2
    build_wkg
    echo "registry: wkg built in $((SECONDS - began)) s" >&2
    continue
  fi
  [ -n "${package[$name]:-}" ] || { echo "registry: no such program: $name" >&2; exit 1; }
  [ -x "$programs/$name" ] && continue
  began=$SECONDS
  echo "registry: building $name" >&2
  draft=$programs/.draft.$name.$$
  (cd "$here/$name" && env GO111MODULE=on GOWORK=off GOFLAGS=-mod=readonly GOTOOLCHAIN=auto GOOS= GOARCH= \
    go build -trimpath -ldflags "-s -w" -o "$draft" "${package[$name]}") >&2
  mv "$draft" "$programs/$name" # only whole programs have their final name
  echo "registry: $name built in $((SECONDS - began)) s" >&2
done
echo "$programs"
