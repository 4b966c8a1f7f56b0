package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// minWithMetrics is the minimum ratio of requests per second with all metrics to those without metrics of routes.
	minWithMetrics = 0.95
	// maxSeries is the maximum number of series of a route, and maxRouteScrape the maximum time of one scrape.
	// maxMeanwhile is the maximum ratio of the p99 of requests during scrapes to the p99 without them.
	maxSeries, maxRouteScrape, maxMeanwhile = 25, 2 * time.Second, 1.50
	// comings is how often all hosts come and go. maxGrown is the maximum ratio of the heap and of the number of series
	// afterwards to those before.
	comings, maxGrown = 5, 1.02
	// settling is the maximum time between the removal of the last host and the end of its series and memory. Removed
	// routes stay in memory for ten seconds, because requests on their way may still open streams.
	settling = 30 * time.Second
)

// metricsOn and metricsOff are the options of the controller with and without metrics of routes.
var metricsOn, metricsOff = []string{}, []string{"disable_route_metrics"}

// metricsSides are the options that metricsCost compares with the first ones.
var metricsSides = []struct {
	work    string
	options func(health string) []string
}{
	{"no metrics of routes", func(string) []string { return metricsOff }},
	{"metrics of routes", func(string) []string { return metricsOn }},
	{"all metrics, with the names of ingress-nginx", func(health string) []string {
		return []string{"health " + health, "health_metrics", "nginx_metrics"}
	}},
}

// metricsParts are the measurements of BENCH=-metrics. Each gets the site and writes its figures as rows of a table.
var metricsParts = []func(ctx context.Context, o options, s site, to *strings.Builder) ([]bar, error){
	metricsCost, metricsScrape, metricsGone,
}

// compareMetrics measures the cost of metrics, prints the figures, and returns the bars.
func compareMetrics(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	var bars []bar
	var text strings.Builder
	text.WriteString("\n## Metrics\n\n| work | figures |\n| --- | --- |\n")
	s = s.in("metrics")
	for _, part := range metricsParts {
		more, err := part(ctx, o, s, &text)
		if err != nil {
			return nil, err
		}
		bars = append(bars, more...)
	}
	_, err := io.WriteString(out, text.String())
	return bars, err
}

// metricsCost compares the requests per second with metrics to those without metrics of routes, at one host and at the
// largest number of hosts.
func metricsCost(ctx context.Context, o options, s site, to *strings.Builder) (bars []bar, err error) {
	for _, hosts := range []int{1, o.hosts[len(o.hosts)-1]} {
		rounds, err := metricsRounds(ctx, o, s, hosts)
		if err != nil {
			return nil, err
		}
		for i, side := range metricsSides[1:] {
			work := fmt.Sprintf("requests per second with %s, against none, %s hosts", side.work,
				thousands(float64(hosts)))
			to.WriteString(row(work, fmt.Sprintf("%s and %s", thousands(middle(rates(rounds[i+1]))),
				thousands(middle(rates(rounds[0]))))))
			bars = append(bars, atLeast(work, minWithMetrics, rounds[i+1], rounds[0]))
		}
	}
	return bars, nil
}

// metricsRounds returns the figures of each round for each of metricsSides.
func metricsRounds(ctx context.Context, o options, s site, hosts int) ([][]figures, error) {
	var all []*contestant
	rounds, of := make([][]figures, len(metricsSides)), map[*contestant]int{}
	health, err := freeAddresses(len(metricsSides))
	if err != nil {
		return nil, err
	}
	for i, side := range metricsSides {
		a := applications{hosts: hosts, endpoints: 1, backend: s.backend}
		c, err := startOurs(ctx, s, fmt.Sprintf("metrics-%d-%d", hosts, i), a, side.options(health[i])...)
		defer c.stop()
		if err != nil {
			return nil, err
		}
		all, of[c] = append(all, c), i
	}
	for round := range o.rounds {
		for _, c := range rotated(all, round) {
			f, err := c.overHosts(ctx, o, hosts)
			if err != nil {
				return nil, err
			}
			rounds[of[c]] = append(rounds[of[c]], f)
		}
	}
	return rounds, nil
}

// overHosts sends short GETs to hosts that are evenly distributed over all hosts, one for each connection.
func (c *contestant) overHosts(ctx context.Context, o options, hosts int) (figures, error) {
	return c.awake(func() (figures, error) { return c.spread(o, hosts).run(ctx) })
}

// spread returns a load for hosts that are evenly distributed over all hosts.
func (c *contestant) spread(o options, hosts int) load {
	l := c.load(o, 1)
	l.hosts = nil
	for i := range min(hosts, o.connections) {
		l.hosts = append(l.hosts, hostName(1+i*max(hosts/o.connections, 1)))
	}
	return l
}

// steady returns a load with few requests, whose latency shows what other work costs them.
func (c *contestant) steady(o options, hosts int) load {
	l := c.spread(o, hosts)
	l.perSecond, l.connections, l.warmUp, l.duration = victimRate, victimConnections, 0, 2*o.duration
	return l
}

// metricsScrape counts the series of routes that all had a request, measures a scrape of the health port, and compares
// the p99 of requests during scrapes to the p99 without them.
func metricsScrape(ctx context.Context, o options, s site, to *strings.Builder) ([]bar, error) {
	hosts := o.hosts[len(o.hosts)-1]
	health, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	c, err := startOurs(ctx, s, "metrics-scrape", applications{hosts: hosts, endpoints: 1, backend: s.backend},
		slices.Concat(metricsOn, []string{"health " + health[0], "health_metrics"})...)
	defer c.stop()
	if err := errors.Join(err, c.resume()); err != nil {
		return nil, err
	}
	if err := c.visit(ctx, 1, hosts); err != nil {
		return nil, err
	}
	text, err := textOf(ctx, "http://"+health[0]+"/metrics")
	if err != nil {
		return nil, err
	}
	series := float64(strings.Count(text, "\nk8singress_route_")) / float64(hosts)
	latencies, times, err := c.whileScraped(ctx, o, hosts, health[0])
	if err != nil {
		return nil, err
	}
	took, all := time.Duration(middle(times)), quotients(latencies[1], latencies[0])
	name := thousands(float64(hosts)) + " routes with traffic: "
	to.WriteString(row(name+"series of a route; a scrape; p99 without and during scrapes", fmt.Sprintf(
		"%.1f; %v, %d bytes; %v and %v", series, took.Round(time.Millisecond), len(text),
		time.Duration(middle(latencies[0])).Round(time.Microsecond),
		time.Duration(middle(latencies[1])).Round(time.Microsecond))))
	return []bar{
		held(bar{Work: name + "series of a route", Bar: fmt.Sprintf("at most %d", maxSeries),
			Measured: fmt.Sprintf("%.1f", series)}, series > 0 && series <= maxSeries),
		held(bar{Work: name + "one scrape", Bar: fmt.Sprintf("at most %v", maxRouteScrape),
			Measured: took.Round(time.Millisecond).String()}, took > 0 && took <= maxRouteScrape),
		held(bar{Work: name + "p99 of requests during scrapes", Bar: fmt.Sprintf("at most %.2f", maxMeanwhile),
			Measured: spread(all)}, middle(all) <= maxMeanwhile),
	}, nil
}

// whileScraped returns the p99 of requests in each round, first without and then with scrapes of an address, and the
// times of the scrapes.
func (c *contestant) whileScraped(ctx context.Context, o options, hosts int, address string) (
	latencies [2][]float64, times []float64, err error,
) {
	for round := range o.rounds {
		err := inTurn(round, func(side int) error {
			l := c.steady(o, hosts)
			during, end := context.WithCancel(ctx)
			var scraping sync.WaitGroup
			scraping.Go(func() {
				if side == 1 {
					times = append(times, scrapes(ctx, during, address)...)
				}
			})
			f, err := l.run(ctx)
			end()
			scraping.Wait()
			latencies[side] = append(latencies[side], float64(f.p99))
			return err
		})
		if err != nil {
			return latencies, nil, err
		}
	}
	return latencies, times, nil
}

// scrapes reads the metrics at an address repeatedly, compressed as for Prometheus, and returns the times. It does not
// decompress them, because Prometheus runs on another machine. It begins no scrape when the context during has ended.
func scrapes(ctx, during context.Context, address string) (times []float64) {
	for during.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return times
		}
		request.Header.Set("Accept-Encoding", "gzip")
		begin := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return times
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			return times
		}
		times = append(times, float64(time.Since(begin)))
	}
	return times
}

// visit sends one request to each of n hosts, from the number first on.
func (c *contestant) visit(ctx context.Context, first, n int) error {
	for i := first; i < first+n; i++ {
		if !c.serves(ctx, i) {
			return fmt.Errorf("%s: the host %s is not served: %w", c.name, hostName(i), ctx.Err())
		}
	}
	return nil
}

// metricsGone lets all hosts come and go several times, with a request to each of them. It compares the number of
// series and the heap with those before.
func metricsGone(ctx context.Context, o options, s site, to *strings.Builder) ([]bar, error) {
	hosts := o.hosts[len(o.hosts)-1]
	c, err := startOurs(ctx, s, "metrics-gone", applications{hosts: 1, endpoints: 1, backend: s.backend}, metricsOn...)
	defer c.stop()
	if err := errors.Join(err, c.resume(), c.visit(ctx, 1, 1)); err != nil {
		return nil, err
	}
	series, heap := make([]int, comings+1), make([]int64, comings+1)
	fits := func() bool { return float64(heap[comings]) <= maxGrown*float64(heap[0]) }
	for i := range series {
		if i > 0 {
			if err := c.comeAndGo(ctx, s, hosts); err != nil {
				return nil, err
			}
		}
		if series[i], heap[i], err = c.holds(ctx); err != nil {
			return nil, err
		}
	}
	for begin := time.Now(); time.Since(begin) < settling && (series[comings] > series[0] || !fits()); {
		if series[comings], heap[comings], err = c.holds(ctx); err != nil {
			return nil, err
		}
	}
	work := fmt.Sprintf("%s hosts come and go %d times: ", thousands(float64(hosts)), comings)
	to.WriteString(row(work+"series; heap", fmt.Sprintf("%d; %d", series, heap)))
	return []bar{
		held(bar{Work: work + "series", Bar: fmt.Sprintf("at most %.2f", maxGrown),
			Measured: fmt.Sprintf("%d, before %d", series[comings], series[0])}, series[comings] == series[0]),
		held(bar{Work: work + "heap", Bar: fmt.Sprintf("at most %.2f", maxGrown), Measured: fmt.Sprintf(
			"%.3f (%s, before %s)", float64(heap[comings])/float64(heap[0]), kilobytes(float64(heap[comings])),
			kilobytes(float64(heap[0])))}, fits()),
	}, nil
}

// comeAndGo adds hosts, sends a request to each of them, and removes them.
func (c *contestant) comeAndGo(ctx context.Context, s site, hosts int) error {
	const file = "many.yaml"
	a := applications{hosts: hosts, endpoints: 1, backend: s.backend}
	var text strings.Builder
	for i := 2; i <= hosts+1; i++ {
		a.write(&text, i)
	}
	if err := writeWhole(c.manifests(), file, text.String()); err != nil {
		return err
	}
	if err := c.process.await(ctx, func(ctx context.Context) bool { return c.serves(ctx, hosts+1) }); err != nil {
		return err
	}
	if err := c.visit(ctx, 2, hosts); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(c.manifests(), file)); err != nil {
		return err
	}
	// The endpoints of a host go before its routes, so requests get 503 for a while.
	return c.process.await(ctx, func(ctx context.Context) bool { return c.lacks(ctx, hosts+1) })
}

// lacks reports whether a request to a host gets 404. Hosts are counted from 1.
func (c *contestant) lacks(ctx context.Context, host int) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.http+"/", nil)
	if err != nil {
		return false
	}
	request.Host = hostName(host)
	response, err := http.DefaultClient.Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusNotFound
}

// holds returns the number of series of routes, and the size of the heap in bytes.
func (c *contestant) holds(ctx context.Context) (series int, heap int64, err error) {
	text, err := c.ask(ctx, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	heap, err = c.settledHeap(ctx)
	return strings.Count(text, "\nk8singress_route_"), heap, err
}

// settledHeap returns the size of the heap after several garbage collections, in bytes.
func (c *contestant) settledHeap(ctx context.Context) (int64, error) {
	var said runtimeFigures
	for range collections {
		var err error
		if said, err = c.runtimeSays(ctx, "?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	return said.heap, nil
}
