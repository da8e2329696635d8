# Every target has a help line; `make` alone prints them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -w -X main.version=$(VERSION)
PURE     = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s $(LDFLAGS)'
# Position-independent and with unused sections dropped: the worker is the process that is attacked. It keeps its symbol
# table, which no memory is used for, so that native crashes are reported with names (docs/decisions/0008).
WORKER   = $(GO) build -trimpath -buildmode=pie -ldflags "$(LDFLAGS) -extldflags '-Wl,--gc-sections'"
# Tests use the binaries that operators get, and one worker more that dies on command.
export EXECUTORD_TEST_BIN = $(CURDIR)/bin
FUZZTIME ?= 20s
BENCH    ?= .
AREAS    ?= ecma429
HOSTILE  ?= .
SOAK     ?= 10m
BOX      ?= nspawn
ARCH     ?= amd64
ROUNDS   ?= 10
LANES    ?=
MUTANTS  ?=

.PHONY: help setup build build-faulty run test test-go test-race test-js verify mutants lint format bench bench-latency bench-peers fuzz hostile soak wpt package check-systemd check-container clean v8-info generate

help: ## print this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install what is missing, lay the link to V8's headers, bundle the JavaScript (needed once)
	@.ci/setup

build: setup ## build bin/executord, bin/executorctl and bin/executor-worker
	@mkdir -p bin
	$(PURE) -o bin/executord ./cmd/executord
	$(PURE) -o bin/executorctl ./cmd/executorctl
	$(WORKER) -o bin/executor-worker ./cmd/executor-worker

build-faulty: setup
	@mkdir -p bin
	@$(WORKER) -tags executor_faults -o bin/executor-worker-faulty ./cmd/executor-worker

run: build ## run a program with tools through a real worker process and print its outcome
	bin/executorctl run docs/examples/report.js --embedded --tools docs/examples/tools.json --input '{"minimum": 30}'

test: build build-faulty ## run every test: test-go, test-race and test-js, whichever of them fails
	@$(MAKE) --no-print-directory --keep-going -j1 test-go test-race test-js

test-go: build build-faulty ## run the tests in Go, and measure what they reach (bin/coverage.out)
	.ci/twice $(GO) test -timeout 20m -coverprofile=bin/coverage.out ./...

test-race: build build-faulty ## run those of what runs at once with the race detector, and repeat less
	.ci/twice $(GO) test -timeout 20m -race -short $$($(GO) list ./ipc/... ./daemon/... | grep -vE '/(e2e|codemode)') ./sandbox/v8 ./sandbox # e2e drives binaries without the detector, codemode has no goroutines

test-js: build ## run the tests of packaging/npm on Node, Deno, Bun, workerd and, where there is one, Chromium (2 minutes)
	cd packaging/npm && npm test --silent

verify: setup ## the gate, which is what CI runs: every lane of .ci/verify, make run and make test among them (LANES="maps errors" narrows it)
	@.ci/verify $(LANES)

lint: setup ## the lanes of the gate that only read the sources: format, vet and static analysis
	@.ci/verify format vet vet-faulty static shell

mutants: setup ## break one limit, mapping, bound or rule at a time, and see that a test notices (MUTANTS=pattern narrows it)
	@.ci/mutants '$(MUTANTS)'

format: setup ## format the Go sources
	$(GO) tool gofumpt -w cmd daemon docs ipc man packaging sandbox systemd

bench: build ## print CPU and wall time per execution, what restoring costs beside the bare engine, first touches, bench-latency and bench-peers
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 200x ./daemon/e2e
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 10x ./sandbox
	$(GO) test -run '^$$' -bench '$(BENCH)' ./sandbox/v8 ./ipc/...
	@$(MAKE) --no-print-directory bench-latency
	@$(MAKE) --no-print-directory bench-peers

bench-latency: build ## measure what callers wait for (a minute, or with ROUNDS=N other than 10); table, plot and ratios to the previous commit go to bench/
	EXECUTORD_LATENCY='$(ROUNDS)' $(GO) test -count=1 -timeout 20m -v -run 'TestLatency$$' ./daemon/e2e

bench-peers: build ## measure beside isolated-vm, workerd and quickjs from npm (3 minutes) and print ratios and bars met or missed
	$(GO) run ./daemon/e2e/peers -bin bin

fuzz: setup ## fuzz every decoder for FUZZTIME each (default 20s), or for OTHERS where it faces no client
	@FUZZTIME=$(FUZZTIME) OTHERS=$(or $(OTHERS),$(FUZZTIME)) .ci/fuzz

hostile: build ## attack every limit with 245 programs beside a neighbour (4 minutes; HOSTILE=pattern narrows it) and print how each ended
	EXECUTORD_HOSTILE='$(HOSTILE)' $(GO) test -count=1 -timeout 20m -v -run TestHostileProgramsHurtNobody ./daemon/e2e

soak: build ## run mixed load for SOAK (default 10m) while workers and connections die, check every answer, print the figures
	EXECUTORD_SOAK='$(SOAK)' $(GO) test -count=1 -timeout 0 -v -run TestSoak ./daemon/e2e

wpt: build $(if $(SERVER),build-faulty) ## run web-platform-tests of the tree WPT=DIR (AREAS=url,streams; SERVER=URL for those that need the suite's own); without WPT it says how to get one
	@test -n '$(WPT)' || { $(GO) run ./cmd/wpt lay --help; exit 2; }
	$(GO) run ./cmd/wpt run --wpt '$(WPT)' --areas '$(AREAS)' $(if $(SERVER),--server '$(SERVER)' --worker bin/executor-worker-faulty,--worker bin/executor-worker) $(ARGS)

package: $(if $(BIN),setup,build) ## build a deb and an rpm in dist/ (ARCH=arm64 BIN=FOLDER for binaries that were made elsewhere)
	BIN='$(BIN)' packaging/build '$(ARCH)'

check-systemd: build build-faulty ## install, upgrade and use the packages under a real systemd (as root; BOX=qemu has a kernel of its own; ARGS=-test.run=B1 narrows it)
	systemd/box/run '$(BOX)' $(ARGS)

v8-info: setup ## print V8's version and flags and whether the programs hold that decided them
	$(GO) test -count=1 -v -run 'TestInfo|TestTerminateFromOutside|TestHeapLimitEndsCleanly' ./sandbox/v8

check-container: ## have Compose and Kubernetes read the manifests of packaging/container, and as root with buildah make the image and run a program in it
	packaging/container/check

clean: ## remove what was built
	rm -rf bin sandbox/runtime/dist sandbox/runtime/node_modules sandbox/v8/include
