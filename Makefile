# Everything runs with Go alone, plus Docker or a PostgreSQL server's binaries; see README, "Getting a server".

MODULES := . integration examples/payments
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 30s

.DEFAULT_GOAL := help
.PHONY: help demo test test/unit test/integration test/example test/imports lint fmt cover fuzz tidy

help: ## show this help
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: ## charge payments exactly once while workers are killed (ARGS='-messages 500 -seed 7')
	cd examples/payments && go run . $(ARGS)

test: test/unit test/integration test/example test/imports ## all tests, with the race detector

test/unit: ## tests that need no server
	go test -race ./...

test/integration: ## the suite against a PostgreSQL that it finds or starts
	cd integration && go test -race ./...

test/example: ## the tests of the demo
	cd examples/payments && go test -race ./...

test/imports: ## what a user of the library compiles: pgx, and nothing else
	.ci/imports

lint: ## golangci-lint with a closed list, gofumpt and go vet, in every module
	@set -e; for m in $(MODULES); do echo "lint $$m"; (cd $$m && go vet ./... && $(GOLANGCI_LINT) run ./...); done

fmt: ## format every module
	@set -e; for m in $(MODULES); do (cd $$m && $(GOLANGCI_LINT) fmt ./...); done

cover: ## coverage of the library by all tests, in cover.out
	go test -coverpkg=./... -coverprofile=unit.out ./...
	cd integration && go test -coverpkg=github.com/txidem/txidem-go/... -coverprofile=../cover.out .
	go tool cover -func=cover.out | grep -E 'txidem-go/(txidem|migrations|internal)' | tail -n 200

fuzz: ## run every fuzz test for FUZZTIME each (default 30s)
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

tidy: ## tidy every module
	@set -e; for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy); done
