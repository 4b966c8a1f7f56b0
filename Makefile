# `make help` lists the targets. The tools they need besides Go come through Go, at the versions that stand in tools/go.mod.

.DEFAULT_GOAL := help
.SILENT:

LINT := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run --config $(CURDIR)/.golangci.yml
XCADDY := go tool -modfile=$(CURDIR)/tools/go.mod xcaddy
MODULE := github.com/k8singress/k8singress
FUZZTIME ?= 30s
FUZZREQUESTS ?= 1000000
# What is passed on to bench, such as BENCH=-quick, BENCH=-http, BENCH=-annotations, BENCH=-streams, BENCH=-tenants,
# BENCH="-rounds 3 -hosts 1,100", BENCH="-against HEAD~5", BENCH="-http -against HEAD~5" or BENCH='-scale "-endpoint-changes 2000"'.
BENCH ?=

.PHONY: help
help: ## this list
	awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: bin/caddy ## Caddy on examples/quickstart, until Ctrl-C; it prints what to try
	{ until curl -fso /dev/null -H 'Host: shop.localhost' http://127.0.0.1:8080/ || ! kill -0 $$$$; do sleep 0.2; done; \
	  kill -0 $$$$ && cat examples/quickstart/try.txt; } 2>/dev/null & \
	exec bin/caddy run --config examples/quickstart/Caddyfile

.PHONY: bin/caddy
bin/caddy:
	echo 'Building bin/caddy; the first time takes some minutes.'
	go build -o $@ ./cmd/caddy

.PHONY: test
test: unit chart release-test e2e ## all tests, those with a real control plane included

.PHONY: check
check: ## what CI runs: format, lint, generated files, all tests with the race detector
	for step in format lint systems generated race chart release-test e2e-race; do \
		echo "== $$step"; begin=$$(date +%s); \
		$(MAKE) --no-print-directory $$step || { echo "== $$step failed"; exit 1; }; \
		echo "== $$step: $$(( $$(date +%s) - begin )) s"; \
	done

.PHONY: lint
lint: ## golangci-lint on all modules
	$(LINT) ./...
	cd test/chart && $(LINT) ./...
	cd test && $(LINT) ./...
	cd release && $(LINT) ./...
	cd tools && $(LINT) ./...

# make same-code FROM=COMMIT [TO=COMMIT]
TO ?= HEAD

.PHONY: same-code
same-code: ## fails if the commits from FROM to TO (HEAD) change Go code, and not only comments and layout
	go -C tools run ./samecode -dir $(CURDIR) -from "$(FROM)" -to $(TO)

.PHONY: systems
systems: ## type-checks our packages for macOS and Windows, which serve all but UDP ports
	go test -count=1 -run '^TestOtherSystems' ./internal/tests/arch

.PHONY: generate
generate: ## writes what is generated: documents printed from tables, and deploy/ from the chart
	go generate ./...
	cd test/chart && go generate ./...

.PHONY: golden
golden: ## rewrites the expected files of the golden tests; read the diff
	go test ./internal/tests/golden/ ./caddyfile/ -update

.PHONY: fuzz
fuzz: ## each fuzz test for FUZZTIME (30s), and FUZZREQUESTS (a million) to other servers beside ours
	grep -rn --include='*_test.go' '^func Fuzz' . | sed -E 's#^\./(.*)/[^/]+:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*#\1 \2#' | \
	while read -r folder name; do \
		echo "== $$folder $$name"; \
		go test "./$$folder" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done
	go test ./internal/http/httpserver -run '^TestLikeNetHTTP$$' -v -timeout 2h -requests $(FUZZREQUESTS)
	go test ./internal/tests/featuretests -run '^TestLikeNginx$$' -v -timeout 2h -requests $(FUZZREQUESTS)

# It reads the database at vuln.go.dev.
VULN := go run golang.org/x/vuln/cmd/govulncheck@v1.8.0

.PHONY: vuln
vuln: ## known vulnerabilities in what the packages reach, by govulncheck; it needs the network
	$(VULN) ./...
	cd release && $(VULN) ./...

.PHONY: soak
soak: ## slow, broken and hostile clients and endpoints, and changes all the while, for SOAK (10m)
	K8SINGRESS_SOAK=$(SOAK) go test ./internal/tests/featuretests -run '^TestSoak$$' -v -count=1 -timeout 48h

SOAK ?= 10m

.PHONY: bench
bench: bin/caddy ## what it must reach and what it reaches, beside plain Caddy, nginx and haproxy, and on a real API server
	go build -o .cache/bench ./bench
	.cache/bench -binary bin/caddy $(BENCH)

# What is passed on to bench limits, such as LIMITS=-quick.
LIMITS ?=

.PHONY: limits
limits: bin/caddy ## honest requests while hostile clients use up descriptors or memory; it fails if a bar is missed
	go build -o .cache/bench ./bench
	.cache/bench limits -binary bin/caddy $(LIMITS)

.PHONY: microbench
microbench: ## the steps alone: host, path and endpoint lookup, translation, rendering, apply
	go test -run '^$$' -bench . -benchmem $(MICROBENCH)

MICROBENCH := $(addprefix ./internal/,http/live upstream/split upstream/endpoints upstream/balancer model/snapshot translate control/render control/apply tls/certs http/http1 http/httpserver)

.PHONY: chart
chart: ## the tests of charts/k8singress, with Helm; the first build takes some minutes
	cd test/chart && go test -count=1 -timeout 30m ./...

.PHONY: e2e
e2e: ## the tests of test/ alone: real etcd, API server and pods; the first build takes some ten minutes
	$(call in-test,go test $(E2E) ./...)

# With the race detector in the tests and in Caddy, not in Kubernetes; and with fewer certificates, which take a second each.
.PHONY: e2e-race
e2e-race:
	$(call in-test,go test -race -short $(E2E) ./e2e && go test $(E2E) $$(go list ./... | grep -v /e2e))

# A test there builds the control plane, which counts as part of its time.
E2E := -count=1 -timeout 40m

define in-test
	if [ "$$(id -u)" = 0 ] || unshare --user --map-root-user --net true 2>/dev/null; then \
		[ -e .cache/test/testbed ] || echo 'Building a Kubernetes control plane; the first time takes some ten minutes.'; \
		cd test && $(1); \
	else \
		echo 'LEFT OUT: what is in test/, with a real control plane and pods.'; \
		echo 'It makes namespaces, which only root may do on this machine.'; \
	fi
endef

.PHONY: xcaddy
xcaddy: ## bin/caddy as users build it: xcaddy, from xcaddy.json and this checkout
	set -- $$(sed -n 's/.*"caddy_version": *"\([^"]*\)".*/\1/p' xcaddy.json); \
	for plugin in $$(sed -n 's/.*"module_path": *"\([^"]*\)".*/\1/p' xcaddy.json); do \
		case $$plugin in $(MODULE)) plugin=$(MODULE)@v0.0.0=$(CURDIR);; esac; \
		set -- "$$@" --with "$$plugin"; \
	done; \
	$(XCADDY) build "$$@" --output bin/caddy

# What is passed on to release/, such as RELEASE="-platforms linux/amd64" or RELEASE="-binary linux/amd64=caddy-amd64".
RELEASE ?=

.PHONY: image
image: ## the container image as an OCI layout, dist/image, without Docker; the first build takes minutes for each platform
	$(call in-release,image)

.PHONY: release
release: ## a release in dist/, which nothing is published of; it ends with what remains to be done, and how
	rm -rf dist
	$(call in-release,everything)

define in-release
	go build -C release -o $(CURDIR)/.cache/release/release .
	.cache/release/release $(1) $(RELEASE)
endef

# Parts of the above.

.PHONY: release-test
release-test:
	cd release && go test -count=1 -timeout 30m ./...

# With the race detector on a busy machine, one package needs about the ten minutes that Go gives it.

.PHONY: unit
unit:
	go test -timeout 30m ./...
	cd tools && go test ./...

.PHONY: race
race:
	go test -race -timeout 30m ./...
	cd tools && go test -race ./...

.PHONY: format
format:
	files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi

.PHONY: generated
generated:
	before=$$(mktemp); after=$$(mktemp); \
	sums() { git ls-files --cached --others --exclude-standard -z | xargs -0 sha256sum; }; \
	sums > $$before; $(MAKE) --no-print-directory generate || exit 1; sums > $$after; \
	diff $$before $$after; same=$$?; rm -f $$before $$after; \
	if [ $$same != 0 ]; then echo 'generated files were not up to date: "make generate" has just written them, commit them'; exit 1; fi
