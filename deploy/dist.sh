#!/usr/bin/env bash
# Makes DIST: what the image holds. The host as one static program for this machine's architecture,
# the built plugins, LICENSE.  usage: deploy/dist.sh [DIST]   (default: target/dist)
set -euo pipefail
cd "$(dirname "$0")/.."
target_dir=${CARGO_TARGET_DIR:-target}
dist=${1:-$target_dir/dist}
die() { echo "dist: $*" >&2; exit 1; }

host=$(rustc -vV | sed -n 's/^host: //p')
case $host in *-linux-*) ;; *) die "a static program for Linux is built on Linux, this is $host" ;; esac
target=${host%%-*}-unknown-linux-musl
if [ "$host" != "$target" ]; then
  command -v musl-gcc >/dev/null || die "musl-gcc is missing: apt-get install musl-tools (Fedora: musl-gcc)"
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"
  export "CC_${target//-/_}=musl-gcc"
fi

export CARGO_INCREMENTAL=0 # what is shipped comes out the same, whatever was built before
# The host alone (not --workspace): what is shipped has the features that it asks for itself.
cargo build --profile shipped --locked -p keelson --target "$target"
program=$target_dir/$target/shipped/keelson
if readelf -lW "$program" | grep -q INTERP; then die "$program is not static: it asks for an interpreter"; fi

new=$dist.new
rm -rf "$new"
mkdir -p "$new"
install -m 755 "$program" "$new/keelson"
at=$(cd "$new" && pwd)
cargo run --release --locked -p keelson-plugins-build -- --out "$at/plugins" --keelson "$at/keelson"
install -m 644 LICENSE "$new/LICENSE"
chmod 755 "$new" "$new/plugins"
chmod 644 "$new"/plugins/*
rm -rf "$dist"
mv "$new" "$dist"
du -h "$dist"/keelson "$dist"/plugins/*
