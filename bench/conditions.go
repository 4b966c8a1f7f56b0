package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

const (
	// candidates is the number of routes with a condition on one path; only the last one matches. minWithCandidates
	// is the minimum ratio of requests per second to a path without conditions.
	candidates        = 16
	minWithCandidates = 0.90
	// conditionHeader is the header field that the conditions match.
	conditionHeader = "X-Bench"
)

// compareConditions compares a path with conditions with the same path without them.
func compareConditions(ctx context.Context, o options, s site, _ io.Writer) ([]bar, error) {
	plain, err := documentOf(ctx, s)
	if err != nil {
		return nil, err
	}
	with, err := withCandidates(plain)
	if err != nil {
		return nil, err
	}
	var both [2]*contestant
	for side, document := range [][]byte{with, plain} {
		both[side], err = startWithDocument(ctx, s, fmt.Sprintf("conditions-%d", side), document)
		defer both[side].stop()
		if err != nil {
			return nil, err
		}
	}
	answered := &series{}
	for round := range o.rounds {
		err := inTurn(round, func(side int) error {
			f, err := both[side].requests(ctx, o, 1)
			answered.add(side, f.perSecond)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	work := fmt.Sprintf("a path with %d conditions, of which the last matches, against no conditions", candidates)
	return []bar{answered.atLeast(work, minWithCandidates)}, nil
}

// documentOf returns the document of a controller with one host.
func documentOf(ctx context.Context, s site) ([]byte, error) {
	c, err := startOurs(ctx, s, "document", applications{hosts: 1, endpoints: 1, backend: s.backend})
	defer c.stop()
	if err == nil {
		err = c.resume()
	}
	if err != nil {
		return nil, err
	}
	text, err := c.ask(ctx, "/k8singress/config")
	return []byte(text), err
}

// withCandidates adds routes with one condition each before the route of the first host. Requests of the load match the
// last condition.
func withCandidates(document []byte) ([]byte, error) {
	var whole object
	if err := json.Unmarshal(document, &whole); err != nil {
		return nil, err
	}
	at := whole
	for _, key := range []string{"apps", "k8singress", "live", "hosts", hostName(1)} {
		at, _ = at[key].(object)
	}
	routes, _ := at["routes"].([]any)
	if len(routes) != 1 {
		return nil, fmt.Errorf("the document has %d routes for the first host, not one", len(routes))
	}
	var all []any
	for i := range candidates {
		route := object{"match": object{"headers": []object{{"name": conditionHeader, "value": strconv.Itoa(i + 1)}}}}
		for key, value := range routes[0].(object) {
			route[key] = value
		}
		all = append(all, route)
	}
	at["routes"] = append(all, routes[0])
	return json.Marshal(whole)
}

// startWithDocument starts Caddy without a source of objects, and loads a document.
func startWithDocument(ctx context.Context, s site, name string, document []byte) (*contestant, error) {
	c, err := newContestant(s.folder, name, 1)
	if err != nil {
		return c, err
	}
	c.header = conditionHeader + ": " + strconv.Itoa(candidates)
	config := fmt.Appendf(nil,
		"{\n\tadmin %s\n\tk8singress {\n\t\treach_allow 127.0.0.0/8\n\t\tsource none\n\t\thttp %s\n\t\thttps "+
			"%s\n\t}\n}\n",
		c.admin, c.http, c.https)
	return c, c.start(ctx, s.caddy(c.folder, "Caddyfile"), config, func(ctx context.Context) bool {
		// Wait for the controller. A process without it would also use the listen addresses of the document.
		_, err := c.ask(ctx, "/k8singress/status")
		return err == nil && c.put(ctx, document) == nil && c.serves(ctx, 1)
	})
}

// put loads a document into the controller.
func (c *contestant) put(ctx context.Context, document []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+c.admin+"/k8singress/config",
		bytes.NewReader(document))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// picks matches the line in which the test of the weighted split prints its result.
var picks = regexp.MustCompile(`(?m)1,000,000 picks are at most ([0-9.]+ %) off the weights$`)

// compareSplit runs the test of the weighted split, which fails if the shares are too far from the weights.
func compareSplit(ctx context.Context, _ options, _ string, _ io.Writer) ([]bar, error) {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestSplitMatchesTheWeights$",
		"./internal/upstream/split")
	test.Stderr = os.Stderr
	output, failed := test.Output()
	measured := picks.FindSubmatch(output)
	if measured == nil {
		return nil, fmt.Errorf("the test of the split: %w\n%s",
			errors.Join(failed, errors.New("its output has no result")), output)
	}
	b := bar{Work: "1,000,000 picks by weight", Bar: "within 0.2 % of the weights",
		Measured: "at most " + string(measured[1]) + " off"}
	return []bar{held(b, failed == nil)}, nil
}
