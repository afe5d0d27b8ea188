#!/usr/bin/env bash
# The guests of this folder, and examples/staticsite, as each toolchain makes them, into a folder. Half a minute on two cores.
# usage: build.sh OUT
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}/guests")
wit=$root/wit/operator-0.1.0
tools=$("$here/../toolchains/build.sh")
PATH=$tools/bin:$("$here/../toolchains/cargo-component.sh"):$PATH
draft=$(mktemp -d)
trap 'rm -rf "$draft"' EXIT
quiet() { "$@" >"$draft/log" 2>&1 || { cat "$draft/log" >&2; exit 1; }; }

# Only whole components have their final name.
put() { mv "$1" "$out/$2.wasm.part"; mv "$out/$2.wasm.part" "$out/$2.wasm"; }

cp "$here/python/guest.py" "$here/javascript/keelson.js" "$here/javascript/guest.js" "$draft/"
cd "$draft"
for stub in "" --stub-wasi; do
  # shellcheck disable=SC2086 # one word or none
  {
    quiet componentize-py -d "$wit" -w plugin componentize guest $stub -o python.wasm
    quiet componentize-qjs -w "$wit" -j guest.js -n plugin --module-root . --sync --opt-size $stub -o javascript.wasm
  }
  put python.wasm "python${stub:+-stub}"
  put javascript.wasm "javascript${stub:+-stub}"
done

quiet "$root/examples/staticsite/build.sh" "$out/staticsite"

cd "$here/rust"
export CARGO_INCREMENTAL=0
quiet cargo build --release --locked --target wasm32-wasip2 --target-dir "$target/wasip2"
cp "$target/wasip2/wasm32-wasip2/release/guest.wasm" "$draft/" && put "$draft/guest.wasm" rust-wasip2
quiet cargo component build --release --locked --target wasm32-wasip1 --target-dir "$target/cargo-component"
cp "$target/cargo-component/wasm32-wasip1/release/guest.wasm" "$draft/" && put "$draft/guest.wasm" rust-wasip1
ls -l "$out" >&2
