# make demo and make test need rustup, Go (1.21 or later), make and a C compiler; what is missing is named first.
# Words: CONTEXT=name (demo on a cluster of yours), ARGS="…" (for test-e2e and bench: a filter and flags),
# IMAGE= and ENGINE= (image). CARGO_TARGET_DIR, KEELSON_CACHE and KUBEBUILDER_ASSETS are respected.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export KEELSON_BIN ?= $(TARGET)/release/keelson
export KEELSON_TEST_CLOCK_BIN ?= $(TARGET)/release/keelson-test-clock
export KEELSON_PLUGINS ?= $(TARGET)/plugins
export KEELSON_GUESTS ?= $(TARGET)/test-guests
export KEELSON_LANGUAGES ?= $(TARGET)/test-languages
# cargo plans its own jobs: what make says about jobs is for the two builds that run side by side.
cargo := env -u MAKEFLAGS -u MFLAGS cargo
native = $(shell rustc -vV | sed -n 's/^host: //p')

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name words; do printf '  make %-14s %s\n' "$$name" "$$words"; done

.PHONY: demo demo-down
demo: ## a local cluster, the host, two Databases (CONTEXT=name: on a cluster of yours)
	@tests/preflight.sh $(if $(CONTEXT),context,demo)
	@$(MAKE) -j2 build $(if $(CONTEXT),,control-plane)
	@tests/demo/demo.sh up $(CONTEXT)
demo-down: ## ends what make demo has started (CONTEXT=name: there)
	@tests/demo/demo.sh down $(CONTEXT)

.PHONY: build control-plane preflight
build: ## host and plugins, release
	@$(cargo) build --release --workspace --locked
	@$(TARGET)/release/keelson-plugins-build --out $(TARGET)/plugins
control-plane: ## the programs of the local control plane, into the cache
	@tests/control-plane/build.sh >/dev/null
.PHONY: registry
registry: ## a registry, oras and cosign for the tests, into the cache
	@tests/registry/build.sh >/dev/null
preflight: ## what is missing on this machine for make demo and make test
	@tests/preflight.sh test

.PHONY: test test-unit test-e2e fuzz test-guests test-clock test-image bench
test: ## unit and end-to-end tests
	@tests/preflight.sh test
	@$(MAKE) -j2 test-build control-plane
	@$(MAKE) registry
	@$(MAKE) test-unit
	@$(MAKE) test-e2e
.PHONY: test-build
test-build: build test-guests test-clock
	@$(cargo) test --release --workspace --locked --no-run
	@$(cargo) test --release --workspace --locked --no-run --test e2e
test-unit: build ## tests that need no cluster
	@$(cargo) test --release --workspace --locked
	@cd plugins && $(cargo) test --locked --target $(native)
test-e2e: build test-guests test-clock control-plane registry ## tests on a real control plane (ARGS=case_01)
	@$(cargo) test --release --workspace --locked --test e2e -- $(ARGS)
fuzz: build ## ten times the fuzzing of make test (KEELSON_FUZZ=100: a hundred times)
	@KEELSON_FUZZ=$${KEELSON_FUZZ:-10} $(cargo) test --release --workspace --locked --test fuzz -- --nocapture
test-guests: build ## plugins that only tests use
	@$(TARGET)/release/keelson-plugins-build --source tests/guests --out $(TARGET)/test-guests
test-clock: build ## the host once more, with a clock that tests can put wrong
	@$(cargo) build --release --workspace --locked --features keelson/test-clock --bin keelson-test-clock
test-cargo-component: build ## the same renderings from cargo component's build (installs it: 8 minutes)
	@tests/cargo-component.sh
.PHONY: languages test-languages
languages: ## plugins in Python, JavaScript and Rust with WASI (needs python3 and node; installs cargo-component)
	@tests/languages/build.sh $(KEELSON_LANGUAGES)
test-languages: build languages control-plane ## tests of these plugins, also on a real control plane
	@$(cargo) test --release --workspace --locked --test languages -- --ignored
	@$(cargo) test --release --workspace --locked --test e2e -- --ignored languages::
test-image: ## the image, run as a Pod would (root, buildah, musl-tools)
	@tests/preflight.sh image
	@tests/image/run.sh
bench: build languages test-guests control-plane ## ratios against floors, on one control plane
	@$(cargo) build --profile shipped --locked -p keelson --bin keelson
	@$(cargo) bench --workspace --locked --bench render
	@$(cargo) bench --workspace --locked --bench languages
	@$(cargo) bench --workspace --locked --bench load
	@KEELSON_BIN=$(TARGET)/shipped/keelson $(cargo) bench --workspace --locked --bench fair
	@KEELSON_BIN=$(TARGET)/shipped/keelson $(cargo) bench --workspace --locked --bench peers -- $(ARGS)

.PHONY: dist image
dist: ## static host and plugins, as the image holds them
	@deploy/dist.sh
image: dist ## the image (IMAGE=…, ENGINE=docker|podman|buildah)
	@deploy/image.sh

.PHONY: fmt lint deny
fmt: ## formats all code
	@$(cargo) fmt --all
	@cd plugins && $(cargo) fmt --all
	@cd tests/guests && $(cargo) fmt --all
	@cd tests/languages/rust && $(cargo) fmt
lint: ## formatting and clippy, warnings refused
	@$(cargo) fmt --all --check
	@cd plugins && $(cargo) fmt --all --check
	@cd tests/guests && $(cargo) fmt --all --check
	@cd tests/languages/rust && $(cargo) fmt --check
	@$(cargo) clippy --release --workspace --all-targets --locked -- -D warnings
	@cd plugins && $(cargo) clippy --release --all-targets --locked --target $(native) -- -D warnings
	@cd tests/guests && $(cargo) clippy --release --locked --target wasm32-unknown-unknown -- -D warnings
	@cd tests/languages/rust && $(cargo) clippy --release --locked --target wasm32-unknown-unknown --target-dir ../../guests/target -- -D warnings
deny: ## licences, bans and sources of the dependencies
	@$(cargo) deny --all-features check licenses bans sources
	@$(cargo) deny --manifest-path plugins/Cargo.toml --config deny.toml --all-features --target wasm32-unknown-unknown check --allow unmatched-skip --allow license-not-encountered licenses bans sources
