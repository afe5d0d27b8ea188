#!/usr/bin/env bash
# Says what is missing before anything is built, each with its fix, and what the build will cost.
# usage: preflight.sh demo|test|context|image    (context: the demo on a cluster of the user's own)
set -euo pipefail
me=preflight
. "$(dirname "$0")/control-plane/lib.sh"
what=${1:-demo}
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

missing=0
need() { missing=$((missing + 1)); printf '%s: MISSING %s\n%s:   fix: %s\n' "$me" "$1" "$me" "$2" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$1" ]; } # least WANTED FOUND

[ "$(uname -s)" = Linux ] || need "Linux (this is $(uname -s))" "use a Linux machine, virtual machine or container"
case $(uname -m) in x86_64 | aarch64) ;; *) need "a 64-bit x86 or Arm processor (this is $(uname -m))" "use another machine" ;; esac
[ "${BASH_VERSINFO[0]}" -ge 4 ] || need "bash 4 or later" "install bash of your distribution"
has setsid || need "setsid" "install util-linux of your distribution"

# --- Rust
channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$root/rust-toolchain.toml")
if ! has rustup; then
  need "rustup" "https://rustup.rs (a distribution's cargo is not enough: rust-toolchain.toml names Rust $channel and the wasm target)"
elif ! (cd "$root" && rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown); then
  say "Rust $channel and its targets, as rust-toolchain.toml names them, are fetched now"
  (cd "$root" && rustup toolchain install --no-self-update >&2) ||
    need "Rust $channel with the target wasm32-unknown-unknown" "in this folder: rustup toolchain install"
fi
has cc || need "a C compiler (cc)" "apt-get install gcc libc6-dev, or the like"

# --- Go, for the control plane only
built=yes
programs_needed="etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok"
[ "$what" != context ] || programs_needed=kubectl
for name in $programs_needed; do (program "$name") >/dev/null 2>&1 || built=; done
[ "$what" != context ] || ! has kubectl || built=yes
if [ -z "$built" ]; then
  if ! has go; then
    need "Go (1.21 or later), which builds the local control plane" "https://go.dev/dl"
  else
    version=$(cd / && go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
    wanted=$(sed -n 's/^go //p' "$here/go.mod")
    if ! least 1.21 "${version:-0}"; then
      need "Go 1.21 or later (this is ${version:-unknown})" "https://go.dev/dl"
    elif ! least "$wanted" "$version"; then
      say "Go $version will fetch the toolchain $wanted, which Kubernetes needs, from the module proxy"
    fi
    [ "$(go env GOPROXY)" != off ] || need "a Go module proxy (GOPROXY is off)" "go env -w GOPROXY=https://proxy.golang.org,direct"
  fi
fi

# --- the image's test
if [ "$what" = image ]; then
  [ "$(id -u)" = 0 ] || need "root" "run make test-image as root"
  has buildah || need "buildah" "apt-get install buildah"
  has musl-gcc || need "musl-gcc" "apt-get install musl-tools"
fi

# --- disk and time, by what is there already
free_gb() { local at=$1; while [ ! -d "$at" ]; do at=$(dirname "$at"); done; echo $(($(df -k --output=avail "$at" | tail -1) / 1048576)); }
minutes=0
if [ ! -x "$target/release/keelson" ]; then
  rust_gb=4; minutes=$((minutes + 10))
  [ "$(free_gb "$target")" -ge $rust_gb ] || need "$rust_gb GB free for $target (there are $(free_gb "$target"))" "free some, or set CARGO_TARGET_DIR"
fi
if [ -z "$built" ]; then
  go_gb=1; [ "$what" = context ] || go_gb=6
  minutes=$((minutes + 12)); [ "$what" != context ] || minutes=$((minutes - 11))
  gocache=$(has go && go env GOCACHE || echo "$HOME")
  for place in "$cache" "$gocache"; do
    [ "$(free_gb "$place")" -ge $go_gb ] || { need "$go_gb GB free for $place (there are $(free_gb "$place"))" "free some, or set KEELSON_CACHE and GOCACHE"; break; }
  done
fi

[ $missing = 0 ] || die "$missing thing(s) missing; nothing was built"
if [ $minutes -gt 2 ]; then
  say "all there. The first build takes about $minutes minutes on two cores; what it builds is kept (control plane: $cache)"
else
  say "all there"
fi
