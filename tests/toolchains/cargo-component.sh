#!/usr/bin/env bash
# Installs cargo-component into the cache outside the checkout, once for each version (8 minutes on two cores), and prints
# the folder of the program.
set -euo pipefail
version=0.21.1
tools=${KEELSON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson}/tools
if [ "$("$tools/bin/cargo-component" --version 2>/dev/null)" != "cargo-component $version" ]; then
  echo "cargo-component: installing $version into $tools" >&2
  cargo install cargo-component --version $version --locked --root "$tools" --target-dir "$tools/target" >&2
  rm -rf "$tools/target"
fi
echo "$tools/bin"
