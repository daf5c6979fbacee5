# Two commands for a fresh machine: `make demo` and `make test`. `make help` lists the rest.
#
# Run as root, demo and test run containers as an ordinary user made for the purpose: see scripts/setup.

TAGS := $(shell cat scripts/build-tags)
# Without a usable git there is no revision to put into the binary, and Go would refuse to build.
VCS := $(shell git status --porcelain >/dev/null 2>&1 && echo auto || echo false)
FUZZTIME ?= 10s
LOAD ?= 200 5m 8
# Root runs the program as another user, who can't look into root's home.
ROOT := $(filter 0,$(shell id -u))
PREFIX ?= $(if $(ROOT),/usr/local,$(HOME)/.local)

.PHONY: help build build-kubernetes image-kubernetes install man completions release-check demo test test-all storms soak conformance clients load systemd browser keyring hosts check setup third-party vulncheck workflows fmt vet lint others lint-setup unit units unit-kubernetes python stubs npm servers image wheels guest engine engines engine-tests kubernetes fuzz bench bench-search archive-demo clean
.DEFAULT_GOAL := build

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

build: ## build bin/mcp-bridge
	CGO_ENABLED=0 go build -trimpath -buildvcs=$(VCS) -tags "$(TAGS)" -o bin/mcp-bridge ./cmd/mcp-bridge

build-kubernetes: ## build bin/mcp-bridge-kubernetes, which can have code run in a cluster and is twice as large
	CGO_ENABLED=0 go build -trimpath -buildvcs=$(VCS) -tags "$(TAGS) kubernetes" -o bin/mcp-bridge-kubernetes ./cmd/mcp-bridge

# What builds the image of a bridge in a cluster, and the image's name and base.
ENGINE ?= scripts/as-user podman
IMAGE ?= ghcr.io/mcp-bridge/mcp-bridge-kubernetes:latest
BASE ?= docker.io/library/python:3.12-slim
ARCH = $(shell go env GOARCH)
image-kubernetes: build-kubernetes ## build the image of a bridge in a cluster: IMAGE=NAME, BASE=IMAGE, ENGINE=docker
	mkdir -p bin/kubernetes/image/$(ARCH)
	cp bin/mcp-bridge-kubernetes bin/kubernetes/image/$(ARCH)/mcp-bridge
	$(ENGINE) build --build-arg BASE=$(BASE) --build-arg TARGETARCH=$(ARCH) --tag $(IMAGE) --file packaging/Dockerfile bin/kubernetes

install: build ## build it and put it into ~/.local/bin, or /usr/local/bin for root; PREFIX=DIR for DIR/bin
	mkdir -p "$(PREFIX)/bin"
	install -m 755 bin/mcp-bridge "$(PREFIX)/bin/mcp-bridge"
	@echo "installed: $(PREFIX)/bin/mcp-bridge; next: $(if $(ROOT),scripts/as-user )$(PREFIX)/bin/mcp-bridge doctor"

man: build ## write the manual pages into bin/man
	bin/mcp-bridge man bin/man

completions: build ## write what shells complete with into bin/completions
	@mkdir -p bin/completions
	for shell in bash zsh fish powershell; do bin/mcp-bridge completion $$shell >bin/completions/mcp-bridge.$$shell; done

release-check: ## make a release of this commit in a scratch directory, twice, and try what can be tried of it here
	@scripts/release/check

demo: ## from nothing to a run of real code over real servers
	@scripts/demo

test: ## the units, the guest, and the main job over real containers, servers and a client: some 20 minutes
	@test/run

test-all: ## that, and the linters, other engines, storms, conformance, clients, hosts and fuzz targets: an hour and a half
	@test/run all

check: fmt vet lint others unit python ## some minutes, no engine

setup: ## install what is missing on this machine
	@scripts/setup

third-party: ## write the licences and notices of the modules in the binary to cmd/mcp-bridge/THIRD_PARTY and THIRD_PARTY_KUBERNETES
	@touch cmd/mcp-bridge/THIRD_PARTY cmd/mcp-bridge/THIRD_PARTY_KUBERNETES
	go test -count=1 -run TestThirdParty -tags "$(TAGS)" ./cmd/mcp-bridge -update

vulncheck: ## look for known vulnerabilities in what the binary calls, which asks Go's database of them
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -tags "$(TAGS) kubernetes" ./cmd/mcp-bridge

GO_FILES = $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './.cache/*')

workflows: ## actionlint over .github/workflows, which Go's proxy is asked for
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -color=false

fmt: ## fail where gofmt would change something, or a comment has more than 100 columns
	@files=$$(gofmt -l $(GO_FILES)); \
	  if [ -n "$$files" ]; then echo "gofmt -w would change:" $$files >&2; exit 1; fi
	@LC_ALL=C awk '/^[ \t]*\/\// && length($$0) > 100 { print FILENAME ":" FNR ": a comment of more than 100 columns"; wide = 1 } \
	  END { exit wide }' $(GO_FILES) >&2

# vet and lint read what build has compiled.
AS_BUILD = CGO_ENABLED=0 GOFLAGS="$(GOFLAGS) -trimpath"

vet: ## go vet
	$(AS_BUILD) go vet -tags "$(TAGS)" ./...
	cd bench && $(AS_BUILD) go vet ./...

others: lint-setup ## vet, lint and build what make test doesn't run: the driver of clusters, macOS, Windows, and a plain go build, whose program says how to build it with podman
	$(AS_BUILD) go vet -tags "$(TAGS) kubernetes" ./runtime/kubernetes ./cmd/mcp-bridge
	@$(AS_BUILD) .cache/bin/golangci-lint run --build-tags "$(TAGS) kubernetes" ./runtime/kubernetes
	GOOS=darwin CGO_ENABLED=0 go vet -tags "$(TAGS)" ./...
	GOOS=windows CGO_ENABLED=0 go vet -tags "$(TAGS)" ./...
	CGO_ENABLED=0 go build -o /dev/null ./cmd/mcp-bridge
	GOOS=darwin CGO_ENABLED=0 go build -tags "$(TAGS)" -o /dev/null ./cmd/mcp-bridge
	GOOS=windows CGO_ENABLED=0 go build -tags "$(TAGS)" -o /dev/null ./cmd/mcp-bridge

lint: lint-setup ## golangci-lint, which is built first where it is missing, and shellcheck
	@$(AS_BUILD) .cache/bin/golangci-lint run --build-tags "$(TAGS)"
	@cd bench && $(AS_BUILD) ../.cache/bin/golangci-lint run --config ../.golangci.yml
	@command -v shellcheck >/dev/null || { echo "shellcheck is missing; install it: scripts/setup test" >&2; exit 1; }
	@shellcheck $$(grep -lE -d skip '^#!.*(/| )(ba)?sh$$' scripts/* scripts/release/* test/* test/*/* bench/run archive/demo .ci/run)

lint-setup: ## build golangci-lint into .cache/bin, two or three minutes, once
	@scripts/lint-setup

unit: units ## Go tests that need no container, with the race detector; make python runs the guest's
	go test -race -tags "$(TAGS)" ./cmd/mcp-bridge

# The program's own tests run over podman too, except for those that read the modules' source.
units: # unit without what the targets engine and storms run again; test/run sets SHORT to -short for make test
	go test -race $(SHORT) -timeout 30m -skip '^TestPython$$' -tags "$(TAGS)" $$(go list -tags "$(TAGS)" ./... | grep -v '/cmd/mcp-bridge$$')
	go test -race -tags "$(TAGS)" -run '^Test(Imports|SoleImporters|Dependencies|NamedFiles|Size|ThirdParty)$$' ./cmd/mcp-bridge
	cd bench && go test -race ./...

unit-kubernetes: ## Go tests of the driver of clusters, against an API server of the test's own
	go test -race -timeout 20m -tags "$(TAGS) kubernetes" ./runtime/kubernetes
	go test -run '^Test(Cluster|DoctorNames|NetworkRow)$$' -tags "$(TAGS) kubernetes" ./cmd/mcp-bridge

python: ## the guest's own tests, under every Python that is found
	@test/python

stubs: ## mypy and pyright over the declarations of public servers' tools; what can't be had is told, and fails only where CI is set
	@test/stubs

npm: ## install the MCP servers and the client that the end-to-end tests run
	@test/npm-install test/npm .cache/npm

servers: ## install more real servers, from npm, PyPI and Go, which the end-to-end tests call
	@test/servers/setup

image: build ## get the default image or make one like it
	@scripts/as-user bin/mcp-bridge image ensure

wheels: ## make the environment data from PyPI's wheels, twice, and lock others with uv; skipped where PyPI can't be reached
	@test/uv
	MCP_BRIDGE_TEST_WHEELS="$(CURDIR)/.cache/wheels" MCP_BRIDGE_TEST_UV="$(CURDIR)/.cache/uv/bin" \
	  go test -count=1 -run 'TestData$$|^TestUV' -v -tags "$(TAGS)" ./runtime/environments

# What the tests over rootless podman are told, and go test for them, as an ordinary user.
PODMAN = MCP_BRIDGE_TEST_RUNTIME=podman MCP_BRIDGE_TEST_BUILT="$(CURDIR)/bin/mcp-bridge" MCP_BRIDGE_TEST_NPM="$(CURDIR)/.cache/npm" MCP_BRIDGE_TEST_SERVERS="$(CURDIR)/.cache/servers"
OVER_PODMAN = $(PODMAN) go test -race -count=1 -p 1 -timeout 60m -tags "$(TAGS)" -exec "$(CURDIR)/scripts/as-user"

guest: ## the guest's own tests in real containers, and data through the bridge; needs setup, build and image
	@test/guest
	MCP_BRIDGE_TEST_DATA=1 $(OVER_PODMAN) -run '^TestDataOnEngine$$' -v ./cmd/mcp-bridge

engine: ## the main job over real rootless podman; needs setup, build, image, npm and servers
	@$(PODMAN) test/engine short

storms: ## all tests over rootless podman: hostile code, random kills, every server; needs the same
	@test/python-suite
	@$(PODMAN) MCP_BRIDGE_TEST_PYTHON_SUITE="$(CURDIR)/.cache/python-suite.tar" test/engine

soak: ## what takes long: each bad call and each kind of kill a hundred times, a thousand sandboxes, hostile code twice; for a quiet machine; needs the same
	MCP_BRIDGE_TEST_LONG=1 $(OVER_PODMAN) -v -run '^Test(Rollback|ChurnedSandboxes|HostileTwice|KilledAtRandomMoments|KilledInSandboxes|KilledWhileHibernating)$$' ./runtime/podman ./cmd/mcp-bridge

conformance: build ## the official conformance suite, as a server and as a client; needs image and npm
	@test/conformance/run

clients: build ## the SDKs, mcp-remote, Inspector and Claude Code over HTTP, and a bridge that is killed; needs image and npm
	@test/clients/run

load: build ## 200 calls a second into sandboxes over HTTP for five minutes, by vegeta; LOAD="RATE DURATION SANDBOXES"; needs image
	@test/load/run $(LOAD)

systemd: build ## a manager of systemd runs the units of packaging/systemd, and the bridge is killed under it; needs root and image
	@test/systemd/run

browser: build ## pages in a headless Chromium try to call the bridge over HTTP; needs setup browser
	@test/browser/run

keyring: build ## secrets in a gnome-keyring that is open, locked, hung or gone, also of servers that adopt moves; needs setup keyring
	@test/keyring/run

hosts: build ## Claude Code, Codex, Gemini CLI, OpenCode and Inspector, with imitations of their models; needs image and npm
	@test/hosts/run

engines: ## conformance tests over every engine, and a table of what each keeps; needs root, setup engines and build
	@test/engines/all

engine-tests: ## test/engines/with-engine leaves nothing behind; needs the same
	@test/engines/tests

kubernetes: ## the driver of clusters over kwok and a real node, built from Go modules: 15 minutes once on two cores, then as long; needs root, setup kubernetes and engines
	@test/kubernetes/run

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@test/fuzz "$(FUZZTIME)"

bench: ## the benchmarks, each beside its baseline: some twenty minutes; BENCH=call,tool for some parts; needs setup
	@bench/run

bench-search: ## how well tools are found, beside a plain search, and what they cost a model's context, beside loading all of them
	@go test -count=1 -run 'TestQuality|TestContextCost|TestStandingCost' -v -tags "$(TAGS)" ./bridge/catalog ./bridge

archive-demo: ## run the two retired prototypes and see what they could not stop
	@archive/demo

clean: ## remove what was built, and the caches; the image and the user stay
	rm -rf bin dist .cache
