package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// reviewedHosts is the number of Ingresses with which reviews are compared. maxReview is the maximum p99 of a
	// review.
	reviewedHosts = 10_000
	maxReview     = 50 * time.Millisecond
	// reviewsPerKind is the number of reviews of each kind in a round, and reviewers the number of clients that send
	// them at the same time in the second half of a round.
	reviewsPerKind, reviewers = 200, 4
	// largeReviews is the number of reviews that are sent at once, and largeReview the size of each. maxReviewMemory is
	// the maximum memory that they may need, and maxBesideReviews the maximum ratio of the p99 of requests.
	largeReviews, largeReview = 100, 9 << 20
	maxReviewMemory           = 256 << 20
	maxBesideReviews          = 1.50
)

// reviewKinds maps the kinds of reviews to the host of the Ingress. The host is an argument of fmt.Sprintf: the number
// of the review.
var reviewKinds = map[string]string{
	"a new host": "new-%05d.bench.test", "a taken host": "app-%05d.bench.test", "a wildcard": "*.w%d.bench.test",
}

// reviewing sends reviews to the webhook of a contestant.
type reviewing struct {
	*contestant
	url    string
	client *http.Client
}

// compareWebhook measures the duration of reviews, and what large reviews cost, prints the figures, and returns the
// bars.
func compareWebhook(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	r, err := startReviewing(ctx, s.in("webhook"))
	defer r.stop()
	if err = errors.Join(err, r.resume()); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("\n## Webhook\n\n| work | figures |\n| --- | --- |\n")
	bars, err := r.small(ctx, o, &text)
	if err != nil {
		return nil, err
	}
	more, err := r.large(ctx, o, &text)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(out, text.String())
	return append(bars, more...), err
}

func startReviewing(ctx context.Context, s site) (*reviewing, error) {
	r := &reviewing{client: reviewClient()}
	addresses, err := freeAddresses(1)
	if err != nil {
		return r, err
	}
	r.url = "https://" + addresses[0] + "/networking/v1/ingresses"
	certificate, key, err := webhookCertificate(s.folder)
	if err != nil {
		return r, err
	}
	r.contestant, err = startOurs(ctx, s, "webhook",
		applications{hosts: reviewedHosts, endpoints: 1, backend: s.backend},
		fmt.Sprintf("admission_webhook %s {\n\t\t\tcertificate %s %s\n\t\t}", addresses[0], certificate, key))
	return r, err
}

// reviewClient returns a client that accepts the certificate of the webhook.
func reviewClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: reviewers,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
	}}
}

// webhookCertificate writes a certificate and its key to a folder, and returns the names of the files.
func webhookCertificate(folder string) (certificate, key string, err error) {
	m, err := newMaker()
	if err != nil {
		return "", "", err
	}
	chain, private, err := m.issue("localhost")
	if err != nil {
		return "", "", err
	}
	certificate, key = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	return certificate, key, errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(certificate, chain, 0o600),
		os.WriteFile(key, private, 0o600))
}

// reviewOf returns an AdmissionReview about an Ingress with one host. managed is the JSON of its managed fields.
func reviewOf(host, managed string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",`+
		`"kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"operation":"CREATE","object":{`+
		`"metadata":{"namespace":"reviewed","name":"reviewed","managedFields":[%s]},`+
		`"spec":{"ingressClassName":"nginx","rules":[{"host":%q,"http":{"paths":[{"path":"/","pathType":"Prefix",`+
		`"backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}}}`, managed, host)
}

// review sends a review, and returns the status and the body of the response.
func (r *reviewing) review(ctx context.Context, body []byte) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), errors.Join(err, response.Body.Close())
}

// small measures the p99 of reviews of an Ingress with one host, one after the other and several at a time.
func (r *reviewing) small(ctx context.Context, o options, to *strings.Builder) (bars []bar, err error) {
	for _, clients := range []int{1, reviewers} {
		for _, kind := range slices.Sorted(maps.Keys(reviewKinds)) {
			var rounds []float64
			for round := range o.rounds {
				p99, err := r.timeReviews(ctx, kind, clients, round)
				if err != nil {
					return nil, err
				}
				rounds = append(rounds, p99)
			}
			work := fmt.Sprintf("webhook at %s Ingresses, %s, %d at a time: p99", thousands(reviewedHosts), kind,
				clients)
			p99 := time.Duration(middle(rounds))
			to.WriteString(row(work, p99.Round(10*time.Microsecond).String()))
			bars = append(bars, held(bar{Work: work, Bar: fmt.Sprintf("under %v", maxReview),
				Measured: p99.Round(10 * time.Microsecond).String()}, p99 < maxReview))
		}
	}
	return bars, nil
}

// timeReviews sends reviews of one kind with several clients, and returns the p99 of their duration. It fails if the
// decision is wrong.
func (r *reviewing) timeReviews(ctx context.Context, kind string, clients, round int) (float64, error) {
	var mu sync.Mutex
	var times []float64
	var failed error
	var sending sync.WaitGroup
	for client := range clients {
		sending.Go(func() {
			for i := range reviewsPerKind / clients {
				body := reviewOf(fmt.Sprintf(reviewKinds[kind], 1+i*clients+client+round), "")
				begin := time.Now()
				status, text, err := r.review(ctx, body)
				took := time.Since(begin)
				if allowed := strings.Contains(text, `"allowed":true`); err == nil && status != http.StatusOK ||
					allowed == (kind == "a taken host") {
					err = fmt.Errorf("the review of %s: status %d: %s", kind, status, text)
				}
				mu.Lock()
				times, failed = append(times, float64(took)), errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	sending.Wait()
	if failed != nil {
		return 0, failed
	}
	slices.Sort(times)
	return times[len(times)*99/100], nil
}

// large sends large reviews at once, again and again, and compares the p99 of requests with the p99 without reviews.
func (r *reviewing) large(ctx context.Context, o options, to *strings.Builder) ([]bar, error) {
	before, err := r.process.memory()
	if err != nil {
		return nil, err
	}
	var latencies [2][]float64
	var peak int64
	var answers reviewAnswers
	for range o.rounds {
		for side := range 2 {
			p99, most, err := r.besideReviews(ctx, o, side == 1, &answers)
			if err != nil {
				return nil, err
			}
			peak, latencies[side] = max(peak, most), append(latencies[side], p99)
		}
	}
	all, grown := quotients(latencies[1], latencies[0]), max(peak-before, 0)
	name := fmt.Sprintf("%d reviews of 9 MiB at once: ", largeReviews)
	to.WriteString(row(name+"decisions, 429, other responses and errors; p99 of requests without and during reviews",
		fmt.Sprintf("%d, %d, %d; %v and %v", answers.Decided.Load(), answers.Busy.Load(), answers.Other.Load(),
			time.Duration(middle(latencies[0])).Round(time.Microsecond),
			time.Duration(middle(latencies[1])).Round(time.Microsecond))))
	return []bar{
		held(bar{Work: name + "memory", Bar: "at most " + megabytes(maxReviewMemory) + " more",
			Measured: megabytes(grown)}, answers.Decided.Load() > 0 && grown <= maxReviewMemory),
		held(bar{Work: name + "p99 of requests", Bar: fmt.Sprintf("under %.2f", maxBesideReviews),
			Measured: spread(all)}, middle(all) < maxBesideReviews),
	}, nil
}

// besideReviews measures the p99 of requests, and the most memory of the contestant meanwhile. If reviews is true,
// large reviews are sent at the same time and added to answers.
func (r *reviewing) besideReviews(ctx context.Context, o options, reviews bool, answers *reviewAnswers) (p99 float64,
	peak int64, err error) {
	during, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { peak = r.process.peakUntil(during.Done()) })
	var failed error
	if reviews {
		beside.Go(func() { failed = sendReviews(during, r.url, answers) })
	}
	l := r.steady(o, reviewedHosts)
	f, err := l.run(ctx)
	end()
	beside.Wait()
	return float64(f.p99), peak, errors.Join(err, failed)
}

// largeBody returns a review of the maximum size. Its managed fields consist of small objects, so that its decoding
// takes as long as possible.
func largeBody() []byte {
	const field = `{"manager":"0123456789012345678901234567890123456789012345678"}`
	empty := len(reviewOf("large.bench.test", ""))
	managed := strings.Repeat(field+",", (largeReview-empty)/(len(field)+1)-1) + field
	return reviewOf("large.bench.test", managed+strings.Repeat(" ", largeReview-empty-len(managed)))
}
