# "make help" lists all targets.
SHELL := /bin/bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0
GO ?= go
LDFLAGS := -s -w

.PHONY: help
help: ## list all targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: build
build: ## build bin/littoral (the command line), its plugin of kn, bin/littoral-up (the laptop host), bin/littoral-backup and bin/leaf
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/littoral ./scripts/littoral
	ln -sf littoral bin/kn-littoral
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/littoral-up ./infra/runner/littoral-up
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/littoral-backup ./infra/backup
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/leaf ./infra/agents/leaf

.PHONY: run
run: build ## start everything on this machine and run test/examples/hello.yaml; Ctrl-C stops it; [NUVLA=harbour]: that Docker host through a double of Nuvla
	$(if $(NUVLA),$(GO) run ./test/nuvla/serve --edges=$(NUVLA) --) bin/littoral up --apply test/examples/hello.yaml

.PHONY: run-two
run-two: build ## run two controllers beside each other and move an application from one to the other
	scripts/run-two/run-two

.PHONY: test
test: generate-check lint ## run every check and test, against a real Postgres that it starts itself
	$(GO) run ./scripts/with-postgres -- $(GO) test -timeout 20m $$($(GO) list ./... | grep -v /test/faults$$)
	$(ROLES) ./test/inprocess
	$(ROLES) -run TestNoCallCrossesTenants ./test/contracts
	@test -n "$$LITTORAL_ZENOH_MODULES" || echo 'skipped test/zenoh, which needs Node: "make e2e-zenoh" runs it'
	$(FAULTS)

TOOLS := bin/tools

TELEMETRY := bin/tools/telemetry

$(TELEMETRY)/prometheus: scripts/tools/telemetry/go.mod scripts/tools/telemetry/build.sh
	scripts/tools/telemetry/build.sh "$(CURDIR)/$(TELEMETRY)"

.PHONY: e2e-telemetry
e2e-telemetry: $(TELEMETRY)/prometheus ## test policies with a real Prometheus and Alertmanager (the first run builds both)
	LITTORAL_TELEMETRY_TOOLS="$(CURDIR)/$(TELEMETRY)" $(GO) run ./scripts/with-postgres -- $(GO) test -count=1 ./test/e2e/telemetry

S3 := bin/tools/s3

$(S3)/versitygw: scripts/tools/s3/go.mod scripts/tools/s3/build.sh
	scripts/tools/s3/build.sh "$(CURDIR)/$(S3)"

.PHONY: e2e-s3
e2e-s3: $(S3)/versitygw ## test objects and the archive with a real S3 server (the first run builds it)
	LITTORAL_S3_SERVER="$(CURDIR)/$(S3)/versitygw" $(GO) run ./scripts/with-postgres -- $(GO) test -count=1 ./shared/objects/... ./shared/archive

VICTORIALOGS := bin/tools/victorialogs

$(VICTORIALOGS)/victoria-logs: scripts/tools/victorialogs/go.mod scripts/tools/victorialogs/build.sh
	scripts/tools/victorialogs/build.sh "$(CURDIR)/$(VICTORIALOGS)"

.PHONY: e2e-logs
e2e-logs: $(VICTORIALOGS)/victoria-logs ## test the log store with a real VictoriaLogs (the first run builds it)
	LITTORAL_VICTORIALOGS="$(CURDIR)/$(VICTORIALOGS)/victoria-logs" $(GO) test -count=1 ./shared/logs/...

COLLECTOR := bin/tools/collector

$(COLLECTOR)/littoral-collector: $(addprefix scripts/tools/collector/,go.mod manifest.yaml build.sh .ko.yaml compressedstorage/compressedstorage.go)
	scripts/tools/collector/build.sh "$(CURDIR)/$(COLLECTOR)"

NODE_EXPORTER := bin/tools/nodeexporter

$(NODE_EXPORTER)/node_exporter: scripts/tools/nodeexporter/go.mod scripts/tools/nodeexporter/build.sh
	scripts/tools/nodeexporter/build.sh "$(CURDIR)/$(NODE_EXPORTER)"

.PHONY: e2e-collector
e2e-collector: $(COLLECTOR)/littoral-collector $(VICTORIALOGS)/victoria-logs $(NODE_EXPORTER)/node_exporter ## test the telemetry of sites with a real OpenTelemetry Collector, VictoriaLogs and node_exporter (the first run builds all)
	LITTORAL_COLLECTOR="$(CURDIR)/$(COLLECTOR)/littoral-collector" LITTORAL_VICTORIALOGS="$(CURDIR)/$(VICTORIALOGS)/victoria-logs" \
		LITTORAL_NODE_EXPORTER="$(CURDIR)/$(NODE_EXPORTER)/node_exporter" $(GO) test -count=1 ./infra/telemetry

DEX := bin/tools/dex

$(DEX)/dex: scripts/tools/dex/go.mod scripts/tools/dex/build.sh
	scripts/tools/dex/build.sh "$(CURDIR)/$(DEX)"

.PHONY: e2e-login
e2e-login: $(DEX)/dex ## test signing in at the laptop's issuer and at dex (the first run builds it)
	LITTORAL_DEX="$(CURDIR)/$(DEX)" $(GO) run ./scripts/with-postgres -- $(GO) test -count=1 ./test/e2e/login

# What e2e-docker builds: the engine and its runtime, and strangers that its tests speak with.
ENGINE := bin/tools/moby/dockerd bin/tools/runc/runc bin/tools/compose/docker-compose bin/tools/registry/registry

bin/tools/moby/dockerd: scripts/tools/moby/go.mod scripts/tools/moby/build.sh
	scripts/tools/moby/build.sh "$(CURDIR)/$(@D)"

bin/tools/runc/runc: scripts/tools/runc/go.mod scripts/tools/runc/build.sh
	scripts/tools/runc/build.sh "$(CURDIR)/$(@D)"

bin/tools/compose/docker-compose: scripts/tools/compose/go.mod scripts/tools/compose/build.sh
	scripts/tools/compose/build.sh "$(CURDIR)/$(@D)"

bin/tools/registry/registry: scripts/tools/registry/go.mod scripts/tools/registry/build.sh
	scripts/tools/registry/build.sh "$(CURDIR)/$(@D)"

.PHONY: e2e-docker
e2e-docker: $(ENGINE) ## carry out compose files on real engines, by the agent too: dockerd and Podman, or [LITTORAL_TEST_ENGINE=moby|docker|podman|ADDRESS]
	LITTORAL_TEST_COMPOSE="$(CURDIR)/bin/tools/compose/docker-compose" LITTORAL_TEST_REGISTRY="$(CURDIR)/bin/tools/registry/registry" \
		$(GO) run ./scripts/with-postgres -- $(GO) run ./scripts/with-engine -- \
		$(GO) test -count=1 -p 1 -timeout 60m -v -run '_real$$' ./shared/orchestrator/engine ./infra/agents/edge ./infra/agents/leaf

ZENOH := bin/tools/zenoh

$(ZENOH)/node_modules: test/zenoh/package.json test/zenoh/package-lock.json
	mkdir -p $(ZENOH) && cp $^ $(ZENOH) && cd $(ZENOH) && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules

.PHONY: e2e-zenoh
e2e-zenoh: $(ZENOH)/node_modules ## compare key expressions with Zenoh's own code (needs Node)
	LITTORAL_ZENOH_MODULES="$(CURDIR)/$(ZENOH)" $(GO) test -count=1 -v ./test/zenoh

# The test prints how many boundaries it covered, which "go test" shows only with -v. grep removes the thousand lines of passes.
FAULTS := $(GO) test -timeout 240m -count=1 -v ./test/faults | grep --line-buffered -Ev '^(=== | +--- PASS)'

.PHONY: faults
faults: PART ?= all
faults: ## kill the functions at every boundary (make test does so at some; PART=2/8 does the second eighth)
	LITTORAL_FAULTS=$(PART) $(FAULTS)

.PHONY: walks
walks: ## run five hundred random sequences of actions on the whole system (make test runs a few)
	$(GO) run ./scripts/with-postgres -- $(GO) test -timeout 60m -count=1 ./test/walks -walks 500 -seed $$(date +%s)

MUTATE := $(GO) run ./scripts/with-postgres -- $(GO) run ./scripts/mutate

.PHONY: mutate
mutate: SAMPLE ?= 100
mutate: ## change a sample of the lines that decide, and print what no test notices (an hour; SAMPLE=10 for a look)
	$(MUTATE) -sample $(SAMPLE) -tests ./shared/application,./test/contracts,./test/walks ./shared/job
	$(MUTATE) -sample $(SAMPLE) -tests ./test/contracts,./test/walks ./shared/application
	$(MUTATE) -sample $(SAMPLE) -tests ./shared/match ./shared/placement
	$(MUTATE) -sample $(SAMPLE) -tests ./shared/placement,./shared/match ./shared/placement/solver
	$(MUTATE) -sample $(SAMPLE) ./shared/placement/flow

.PHONY: security
security: ## run the corpora of hostile input and print how many cases there are of each
	LITTORAL_TENANT_CALLS=10000 $(GO) run ./scripts/with-postgres -- $(GO) run ./test/security

.PHONY: fuzz
fuzz: ## run each fuzzer for a minute, two at once for each processor: [FUZZTIME=60s]
	$(GO) run ./scripts/with-postgres -- scripts/fuzz/fuzz

.PHONY: bench
bench: ## run the benchmarks, which print ratios within one run
	$(GO) run ./test/bench

.PHONY: generate
generate: ## generate mains, registry, Services and routes from the functions' declarations
	$(GO) run ./scripts/gen/registry
	$(GO) run ./scripts/gen/services
	$(GO) run ./scripts/gen/states
	$(GO) run ./scripts/gen/licences
	cd scripts/tools/proto && $(GO) run . ../../../shared/swm/solve/pb/solver.proto

STATEMENTS := $(CURDIR)/bin/statements
ROLES := LITTORAL_TEST_ROLES="$(CURDIR)/shared/roles/grants.sql" $(GO) run ./scripts/with-postgres -- $(GO) test -timeout 60m
# What runs functions, or does in their name what they do.
RUNNING := ./test/inprocess ./test/contracts ./test/walks ./functions/... ./infra/runner/host ./infra/agents/edge ./infra/agents/bgp \
	./shared/cli ./shared/mdm/connect ./shared/metricsexport ./shared/pdlc/pipeline ./shared/swm/bind

.PHONY: grants
grants: ## run the tests for the statements of functions, and write what each may do in the database: [TESTS=./functions/bus/get: add those]
	$(if $(TESTS),,rm -rf "$(STATEMENTS)")
	LITTORAL_TEST_STATEMENTS="$(STATEMENTS)" $(GO) run ./scripts/with-postgres -- $(GO) test -count=1 -timeout 60m $(or $(TESTS),$(RUNNING))
	$(GO) run ./scripts/gen/grants -programs "$(STATEMENTS)"
	$(GO) run ./scripts/gen/grants "$(STATEMENTS)"

.PHONY: grants-check
grants-check: ## try with the statements of "make grants" that no right is missing or too much, and run the tests in the functions' roles
	$(GO) run ./scripts/gen/grants -try "$(STATEMENTS)"
	$(ROLES) $(or $(TESTS),$(RUNNING))

CONSOLE := functions/console/app

.PHONY: console
console: ## build the console's pages from their source (needs Node)
	cd $(CONSOLE)/ui && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent schema && npm run --silent check && npm run --silent build

.PHONY: console-check
console-check: console ## fail if the committed pages differ from their source
	@test -z "$$(git status --porcelain -- $(CONSOLE))" || \
		{ git status --short -- $(CONSOLE); echo 'the built pages differ: commit what "make console" writes'; exit 1; }

$(TOOLS)/oapi-codegen: scripts/tools/openapi/go.mod scripts/tools/openapi/build.sh
	scripts/tools/openapi/build.sh "$(CURDIR)/$(TOOLS)"

# openapi-typescript makes the console's types of the same page, see console-check.
.PHONY: openapi-check
openapi-check: $(TOOLS)/oapi-codegen ## fail if oapi-codegen does not accept the API page (console-check: openapi-typescript)
	$(TOOLS)/oapi-codegen -generate types,client -package client -o $(TOOLS)/client.go.txt shared/api/openapi.yaml

$(TOOLS)/govulncheck: scripts/tools/vulncheck/go.mod scripts/tools/vulncheck/build.sh
	scripts/tools/vulncheck/build.sh "$(CURDIR)/$(TOOLS)"

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck ## look for known vulnerabilities in what the tree calls
	scripts/tools/vulncheck/check $(TOOLS)/govulncheck

# The packages with goroutines of their own that run in some seconds. It needs a C compiler.
CONCURRENT := ./shared/auth ./shared/boot ./shared/credentials ./shared/history/feed ./shared/observe ./shared/signin \
	./shared/store ./shared/telemetry ./shared/topology/collect ./shared/wake ./infra/runner/alertmanager ./infra/runner/broker \
	./infra/runner/watch

RACE = $(GO) run ./scripts/with-postgres -- env CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 120m

.PHONY: race
race: ## look for data races in the concurrent packages (needs a C compiler)
	$(RACE) $(CONCURRENT)

.PHONY: race-all
race-all: ## look for data races in everything that make test runs (for a nightly run; needs a C compiler)
	$(RACE) $$($(GO) list ./... | grep -v /test/budget$$) # which runs programs that were built without the detector

BROWSER := bin/tools/browser

$(BROWSER)/node_modules: test/e2e/console/package.json test/e2e/console/package-lock.json
	mkdir -p $(BROWSER) && cp $^ $(BROWSER) && cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules

.PHONY: e2e-console
e2e-console: build $(BROWSER)/node_modules $(DEX)/dex ## test the console in a browser (needs Node; says so where Chromium cannot be had)
	test/e2e/console/run "$(CURDIR)/$(BROWSER)"
	$(if $(LITTORAL_TESTS),,LITTORAL_MODULES="$(CURDIR)/$(BROWSER)" LITTORAL_DEX="$(CURDIR)/$(DEX)" \
		$(GO) run ./scripts/with-postgres -- $(GO) test -count=1 -v -run Chromium ./test/e2e/login)

.PHONY: bench-console
bench-console: build $(BROWSER)/node_modules ## print what the console costs at 5,000 nodes and 1,000 applications
	LITTORAL_FLEET=generated:nodes=$${NODES:-5000},seed=7 test/e2e/console/run "$(CURDIR)/$(BROWSER)" measure

GENERATED := shared/docs/states.md shared/docs/licences.md infra/base/egress.yaml infra/base/serviceaccounts.yaml infra/base/tokens.yaml infra/base/rbac.yaml functions/cmd functions/functions_gen.go knative/base knative/roles/functions knative/watches knative/gateway/routes.txt knative/httproute/routes/routes.yaml

.PHONY: generate-check
generate-check: generate ## fail if generated files differ from the declarations
	@test -z "$$(git status --porcelain -- $(GENERATED))" || \
		{ git status --short -- $(GENERATED); echo 'generated files differ: commit what "make generate" writes'; exit 1; }

$(TOOLS)/golangci-lint: scripts/tools/go.mod
	cd scripts/tools && $(GO) build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## run go vet and the linters, which also check the format
	$(GO) vet ./...
	$(TOOLS)/golangci-lint run ./...

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## format the code
	$(TOOLS)/golangci-lint fmt ./...

KO := $(TOOLS)/ko

$(KO): scripts/tools/ko/go.mod scripts/tools/ko/build.sh
	scripts/tools/ko/build.sh "$(CURDIR)/$(TOOLS)"

.PHONY: ko
ko: $(KO) ## build ko, which builds the images, as bin/tools/ko

.PHONY: collector-image
collector-image: $(KO) ## build the image of a site's OpenTelemetry Collector, push it to KO_DOCKER_REPO and print its reference
	@base="$${KO_DEFAULTBASEIMAGE:-$$($(GO) run ./scripts/deploy/base)}" && KO_DEFAULTBASEIMAGE="$$base" KO="$(CURDIR)/$(KO)" \
		KOCACHE="$(CURDIR)/bin/images" scripts/tools/collector/build.sh --image

.PHONY: deploy
deploy: $(KO) ## build, push and deploy to a cluster: KO_DOCKER_REPO=... [OVERLAY=edge|cloud|lab|PATH]
	scripts/deploy/deploy up

.PHONY: release
release: $(KO) ## make what users install in dist/VERSION: VERSION=v1.2.3 [KEY=FILE] [IMAGES=REPOSITORY] [ARGS="-push -systems linux/amd64"]
	$(GO) run ./scripts/release -version '$(VERSION)' $(if $(KEY),-key '$(KEY)') $(if $(IMAGES),-images '$(IMAGES)') $(ARGS)

.PHONY: release-check
release-check: ## make programs and agents of a release twice, from nothing, and compare: [ARGS="-systems linux/amd64"]
	scripts/release/check -parts programs,agents $(ARGS)

.PHONY: e2e-knative
e2e-knative: $(KO) ## test the cluster of KUBECONFIG end to end, after "make deploy" with the same KO_DOCKER_REPO and OVERLAY
	LITTORAL_E2E_KNATIVE=1 $(GO) test -count=1 -timeout 120m -v ./test/e2e/knative

.PHONY: undeploy
undeploy: ## remove Littoral from the cluster, with its database: [OVERLAY=...] [FORCE=1]
	scripts/deploy/deploy down

.PHONY: install-codeco
install-codeco: ## let the deployed system take CodecoApps from kubectl: kind, roles, watch
	scripts/deploy/install-codeco

.PHONY: new-function
new-function: ## create a function: NAME=component/operation [KIND=operation|reaction|task|stream] [ON=application.placed]
	$(GO) run ./scripts/new-function $(if $(KIND),-kind $(KIND)) $(if $(ON),-on $(ON)) $(NAME)

.PHONY: clean
clean: ## remove bin; .littoral, the state of "make run", stays
	rm -rf bin
