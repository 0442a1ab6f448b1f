# The project's tasks. Each installs what it needs; only Node, npm and, for the control plane, Go must be on the machine.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
# `make -C` would otherwise print after the directory that `make control-plane` promises as its last line.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Node 24 and the tools come from node_modules, whatever Node the machine has.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
# Only these steps go beyond what is on the machine; a copy of the lock file inside node_modules says what is installed.
INSTALLED := node_modules/.installed-lock.json

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r target text; do \
	  printf '  make %-14s %s\n' "$$target" "$$text"; done

.PHONY: install
install: $(INSTALLED) ## Install the npm packages of package-lock.json, if they are not

$(INSTALLED): package-lock.json
	@if ! cmp -s $< $@; then npm ci --loglevel=error; cp $< $@; fi
	@touch $@

.PHONY: build
build: $(INSTALLED) ## Bundle nab-sync into one file, dist/nab-sync.mjs, that runs without node_modules
	@npm run --silent build

.PHONY: lint
lint: $(INSTALLED) ## Check types, lint rules, formatting, import directions and unused code
	tsc --noEmit
	eslint
	prettier --check --log-level warn .
	depcruise src test --config .dependency-cruiser.cjs --output-type err
	knip

.PHONY: test
test: lint server ## Run everything that CI runs: lint, then all tests on an embedded API server
	vitest run

# Before a test runner starts: whoever has no Go is told in one line, and the first build shows how far it is.
.PHONY: server
server: $(INSTALLED)
	@if [ "$${USE_EXISTING_CLUSTER:-}" != true ]; then node test/support/control-plane/build.ts >/dev/null; fi
	@node test/support/promtool-build.ts

.PHONY: test-unit
test-unit: $(INSTALLED) ## Run the tests that need no API server
	vitest run --project unit

.PHONY: test-faults
test-faults: $(INSTALLED) ## Harm network, API server, etcd and nab-sync at random; FAULT_ROUNDS= or FAULT_MINUTES= sets how long, FAULT_SEED= replays
	vitest run --project faults

.PHONY: test-nac
test-nac: $(INSTALLED) ## Run nab-sync beside the real non-admin controller; NAC_BINARY= is its program (go build ./cmd)
	@if [ -z "$${NAC_BINARY:-}" ]; then echo 'make test-nac: skipped, NAC_BINARY does not name the non-admin controller'; else vitest run --project nac; fi

.PHONY: bench
bench: build ## Measure speed and size, each beside its limit on this machine; NAC_BINARY= adds the non-admin controller, BENCH= picks parts
	@exec node test/bench/bench.ts

.PHONY: soak
soak: build ## Churn namespaces and backups for MINUTES= (default 10) and show that memory, handles and sockets stay flat
	@MINUTES='$(MINUTES)' exec node test/soak/soak.ts

.PHONY: demo
demo: build ## Show the main job on an embedded API server, checking each step, in under a minute
	@exec node test/demo/demo.ts

.PHONY: cluster
cluster: $(INSTALLED) ## Run an API server with the CRDs until Ctrl-C; DIR= (default .cluster) gets the kubeconfig, PORT= sets the port
	@DIR='$(DIR)' PORT='$(PORT)' exec node test/support/control-plane/cluster.ts

.PHONY: control-plane
control-plane: $(INSTALLED) ## Build kube-apiserver, etcd and kubectl if needed, and print the directory that holds them
	@exec node test/support/control-plane/build.ts

.PHONY: image
image: ## Build the container image nab-sync:latest with podman or docker; IMAGE= gives it another name
	@for engine in podman docker; do \
	  if "$$engine" info >/dev/null 2>&1; then exec "$$engine" build --tag '$(or $(IMAGE),nab-sync:latest)' \
	    --build-arg VERSION="$$(node -p 'require("./package.json").version')" \
	    --build-arg REVISION="$$(git rev-parse HEAD 2>/dev/null || echo unknown)" .; fi; \
	done; \
	echo 'make image: neither podman nor docker runs here; start one of them, or build the Dockerfile of this directory elsewhere' >&2; exit 1
