# `make help` lists the targets. Go builds the other tools that they need, at the versions in tools/go.mod.

.DEFAULT_GOAL := help
.SILENT:

LINT := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run --config $(CURDIR)/.golangci.yml
XCADDY := go tool -modfile=$(CURDIR)/tools/go.mod xcaddy
MODULE := github.com/k8singress/k8singress
FUZZTIME ?= 30s
FUZZREQUESTS ?= 1000000
# Arguments for bench, such as BENCH=-quick, BENCH=-http, BENCH=-annotations, BENCH=-snippets, BENCH=-streams,
# BENCH=-tenants, BENCH=-metrics, BENCH=-webhook, BENCH="-rounds 3 -hosts 1,100", BENCH="-against HEAD~5",
# BENCH="-http -against HEAD~5", BENCH="-snippets -against HEAD~5" or BENCH='-scale "-endpoint-changes 2000"'.
BENCH ?=

.PHONY: help
help: ## print this list
	awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: bin/caddy ## run Caddy with examples/quickstart until Ctrl-C; it prints requests to try
	{ until curl -fso /dev/null -H 'Host: shop.localhost' http://127.0.0.1:8080/ || ! kill -0 $$$$; do sleep 0.2; done; \
	  kill -0 $$$$ && cat examples/quickstart/try.txt; } 2>/dev/null & \
	exec bin/caddy run --config examples/quickstart/Caddyfile

.PHONY: bin/caddy
bin/caddy:
	echo 'Building bin/caddy; the first time takes some minutes.'
	go build -o $@ ./cmd/caddy

# make quick PKG=internal/http/filter; PKG is a folder of any of the five modules.
.PHONY: quick
quick: ## test and lint one package, such as PKG=internal/http/filter
	$(QUICK) $(PKG)

.PHONY: changed
changed: ## test and lint what changed since main, with golden tests, proofs and generated files; about a minute
	$(QUICK) -changed

QUICK = go -C tools run ./quick -dir $(CURDIR) -lint '$(LINT)' -golden '$(GOLDEN)'

.PHONY: test
test: unit chart release-test e2e ## run all tests, including the tests with a real control plane

.PHONY: check
check: ## run what CI runs: format, lint, generated files, and all tests with the race detector
	for step in format lint systems generated race chart release-test e2e-race; do \
		echo "== $$step"; begin=$$(date +%s); \
		$(MAKE) --no-print-directory $$step || { echo "== $$step failed"; exit 1; }; \
		echo "== $$step: $$(( $$(date +%s) - begin )) s"; \
	done

.PHONY: lint
lint: ## run golangci-lint on all modules
	$(LINT) ./...
	cd test/chart && $(LINT) ./...
	cd test && $(LINT) ./...
	cd release && $(LINT) ./...
	cd tools && $(LINT) ./...

# make same-code FROM=COMMIT [TO=COMMIT]
TO ?= HEAD

.PHONY: same-code
same-code: ## fail if the commits from FROM to TO (HEAD) change more of the Go code than comments and layout
	go -C tools run ./samecode -dir $(CURDIR) -from "$(FROM)" -to $(TO)

.PHONY: systems
systems: ## type-check our packages for macOS and Windows, which have all features except UDP ports
	go test -count=1 ./internal/tests/systems

.PHONY: generate
generate: ## write the generated files: docs from tables, and deploy/ from the chart
	go generate ./...
	cd test/chart && go generate ./...

.PHONY: golden
golden: ## rewrite the expected files of the golden tests; read the diff
	go test $(GOLDEN) -update

GOLDEN := ./internal/tests/golden ./internal/translate/annotations ./caddyfile

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (30s), and compare FUZZREQUESTS (a million) requests with other servers
	grep -rn --include='*_test.go' '^func Fuzz' . | sed -E 's#^\./(.*)/[^/]+:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*#\1 \2#' | \
	while read -r folder name; do \
		echo "== $$folder $$name"; \
		go test "./$$folder" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done
	go test ./internal/http/httpserver -run '^TestLikeNetHTTP$$' -v -timeout 2h -requests $(FUZZREQUESTS)
	go test ./internal/tests/featuretests -run '^TestLikeNginx$$' -v -timeout 2h -requests $(FUZZREQUESTS)

.PHONY: mutate
mutate: ## ignore each annotation and each ConfigMap key in turn, and fail if its test does not notice
	go test ./internal/tests/featuretests -run '^TestMutations$$' -v -count=1 -timeout 110m -parallel 4 -every-row

# govulncheck downloads its database from vuln.go.dev.
VULN := go run golang.org/x/vuln/cmd/govulncheck@v1.8.0

.PHONY: vuln
vuln: ## find known vulnerabilities in code that the packages call, with govulncheck; it needs the network
	$(VULN) ./...
	cd release && $(VULN) ./...

.PHONY: soak
soak: ## serve slow, broken and hostile clients and endpoints during constant changes, for SOAK (10m)
	K8SINGRESS_SOAK=$(SOAK) go test ./internal/tests/featuretests -run '^TestSoak$$' -v -count=1 -timeout 48h

SOAK ?= 10m

.PHONY: bench
bench: bin/caddy ## measure performance against its targets, plain Caddy, nginx and haproxy, and with a real API server
	go build -o .cache/bench ./bench
	.cache/bench -binary bin/caddy $(BENCH)

# Arguments for bench limits, such as LIMITS=-quick.
LIMITS ?=

.PHONY: limits
limits: bin/caddy ## measure requests while hostile clients use up descriptors or memory; fail if a target is missed
	go build -o .cache/bench ./bench
	.cache/bench limits -binary bin/caddy $(LIMITS)

.PHONY: microbench
microbench: ## measure single steps: host, path and endpoint lookup, translation, rendering, apply
	go test -run '^$$' -bench . -benchmem $(MICROBENCH)

MICROBENCH := $(addprefix ./internal/,http/live upstream/split upstream/endpoints upstream/balancer model/snapshot translate control/render control/apply tls/certs http/http1 http/httpserver)

.PHONY: chart
chart: ## run the tests of charts/k8singress with Helm; the first build takes some minutes
	cd test/chart && go test -count=1 -timeout 30m ./...

.PHONY: e2e
e2e: ## run the tests in test/: real etcd, API server and pods; the first build takes about ten minutes
	$(call in-test,go test $(E2E) ./...)

# The race detector is on in the tests and in Caddy, but not in Kubernetes. -short uses fewer certificates, which take a
# second each.
.PHONY: e2e-race
e2e-race:
	$(call in-test,go test -race -short $(E2E) ./e2e && go test $(E2E) $$(go list ./... | grep -v /e2e))

# One of the tests builds the control plane, so the timeout includes the build.
E2E := -count=1 -timeout 40m

define in-test
	if [ "$$(id -u)" = 0 ] || unshare --user --map-root-user --net true 2>/dev/null; then \
		[ -e .cache/test/testbed ] || echo 'Building a Kubernetes control plane; the first time takes about ten minutes.'; \
		cd test && $(1); \
	else \
		echo 'LEFT OUT: the tests in test/, which need a real control plane and pods.'; \
		echo 'They create namespaces, which only root may do on this machine.'; \
	fi
endef

.PHONY: xcaddy
xcaddy: ## build bin/caddy with xcaddy, from xcaddy.json and this checkout
	$(call with-plugins,xcaddy.json,bin/caddy)

.PHONY: plugins
plugins: ## build Caddy with plugins of other projects, and test them in chains; the first build takes ten minutes
	$(call with-plugins,xcaddy.json internal/tests/plugins/xcaddy.json,.cache/plugins/caddy)
	go test ./internal/tests/plugins -v -count=1 -binary $(CURDIR)/.cache/plugins/caddy

# Builds the file $(2) with the version of Caddy and the plugins that the files $(1) list. Plugins without a version get
# the latest one, and our module comes from this checkout.
define with-plugins
	$(XCADDY) build $$(awk -F '"' -v ours=$(MODULE) -v here=$(CURDIR) ' \
		$$2 == "caddy_version" { print $$4 } \
		$$2 == "module_path" { plugin = $$4 == ours ? ours "@v0.0.0=" here : $$4 } \
		$$2 == "version" { plugin = plugin "@" $$4 } \
		/}/ && plugin { print "--with", plugin; plugin = "" }' $(1)) --output $(2)
endef

# Arguments for release/, such as RELEASE="-platforms linux/amd64" or RELEASE="-binary linux/amd64=caddy-amd64".
RELEASE ?=

.PHONY: image
image: ## build the image as an OCI layout in dist/image, without Docker; the first build takes minutes for each platform
	$(call in-release,image)

.PHONY: release
release: ## build a release in dist/ without publishing it, and print the commands to publish it
	rm -rf dist
	$(call in-release,everything)

define in-release
	go build -C release -o $(CURDIR)/.cache/release/release .
	.cache/release/release $(1) $(RELEASE)
endef

# The following targets are parts of the targets above.

.PHONY: release-test
release-test:
	cd release && go test -count=1 -timeout 30m ./...

# With the race detector on a busy machine, one package needs about ten minutes, which is Go's default timeout.

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
	if [ $$same != 0 ]; then echo 'generated files were not up to date; "make generate" has just updated them: commit them'; exit 1; fi
