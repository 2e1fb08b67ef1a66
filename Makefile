# Needs Go with a C compiler, and Docker or a PostgreSQL server's binaries; see README, "Getting a server". test/versions needs
# npm on Linux x64 as well, and lint downloads its linter.

MODULES := . integration integration/peers examples/payments
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 30s
VERSIONS ?= 14 15 16 17 18
FAULTS ?= .
ROOT ?= .

.DEFAULT_GOAL := help
.PHONY: help demo test test/unit test/integration test/example test/peers test/imports test/faults test/versions \
	soak soak/crash bench bench/quick bench/processor bench/size bench/peers lint house fmt cover fuzz tidy

help: ## show this help
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: ## charge payments exactly once while workers are killed (ARGS='-messages 500 -seed 7')
	cd examples/payments && go run . $(ARGS)

test: test/unit test/integration test/example test/peers test/imports ## all tests but those of test/faults, with the race detector

test/unit: ## tests that need no server
	go test -race ./...

test/integration: ## the suite against a PostgreSQL that it finds or starts
	cd integration && go test -race -timeout 20m $$(go list ./... | grep -v /faults)
	cd integration && go test -run TestAllocations . # which the race detector would add to

test/example: ## the tests of the demo
	cd examples/payments && go test -race ./...

test/peers: ## the tests of the comparison with other libraries
	cd integration/peers && GOWORK=off go test -race ./...

test/imports: ## what a user of the library compiles: pgx, and nothing else
	.ci/imports

test/faults: ## break deliveries at every point of the wire, kill servers and workers; prints a table
	cd integration/faults && go test -race -count=1 -timeout 30m -run "$(FAULTS)"

test/versions: ## the suite on PostgreSQL 14 to 18, on server binaries from npm (VERSIONS='14 18')
	cd integration && ../.ci/versions "$(VERSIONS)" go test -count=1 -timeout 20m .

soak: ## 100 000 messages, 30 % duplicates, faults all along
	cd integration && FAULTS_SOAK=100000 go test -count=1 -timeout 90m -v -run TestSoak ./faults

soak/crash: ## 200 server kills and 200 worker kills
	cd integration && FAULTS_SERVER_KILLS=200 FAULTS_WORKER_KILLS=200 \
		go test -count=1 -timeout 90m -v -run 'TestServerCrashes|TestWorkerCrashes' ./faults

bench: ## all ways of processing a message against a plain transaction; writes bench/result.json and chart.svg (9 minutes)
	cd integration && go run ./bench -json bench/result.json -chart bench/chart.svg $(ARGS)

bench/quick: ## the same in a minute, printed only (ARGS=-markdown)
	cd integration && go run ./bench -quick $(ARGS)

bench/processor: ## what of it is processor time, in two minutes; printed only
	cd integration && go run ./bench -processor $(ARGS)

bench/size: ## a claim in tables of 0, 1 M and 10 M records; writes bench/size.json (a quarter of an hour, 10 GB of disk)
	cd integration && go run ./bench -size -json bench/size.json $(ARGS)

bench/peers: ## beside other libraries; writes peers/result.json (2 minutes; BABELQUEUE=/path/to/babelqueue-go adds that one)
	integration/peers/run -json result.json $(ARGS)

lint: ## golangci-lint with a closed list, gofumpt and go vet, in every module
	@set -e; export GOWORK=off; for m in $(MODULES); do echo "lint $$m"; \
		(cd $$m && go vet ./... && $(GOLANGCI_LINT) run --allow-parallel-runners ./...); done

house: ## files, lines, function lengths and undocumented names of a checkout (ROOT=., this one)
	@cd integration && go run ./house "$(abspath $(ROOT))"

fmt: ## format every module
	@set -e; export GOWORK=off; for m in $(MODULES); do (cd $$m && $(GOLANGCI_LINT) fmt ./...); done

cover: ## coverage of the library by the tests of all modules, without those of test/faults; in cover.out
	go test -timeout 20m -coverpkg="$$(go list ./... | paste -sd, -)" -coverprofile=cover.out \
		$$(go list ./... ./integration/... ./examples/payments/... | grep -v /faults)
	go tool cover -func=cover.out

fuzz: ## run every fuzz test for FUZZTIME each (default 30s)
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

tidy: ## tidy every module
	@set -e; for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy); done
