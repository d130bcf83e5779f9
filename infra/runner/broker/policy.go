package broker

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rickb777/date/period"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
)

// policy is a delivery spec with parsed durations: when a delivery is retried, and how long one attempt may take.
//
// The rules are those of Knative's dispatcher (eventing, pkg/kncloudevents/retries.go), including its precision of a
// tenth of a second.
type policy struct {
	retries       int
	backoff       func(retry int) time.Duration // before retry number 0, 1, ...
	timeout       time.Duration
	retryAfterMax time.Duration // 0 = an answer's Retry-After is ignored
}

// defaultTimeout limits an attempt if the spec does not; no function may take longer.
const defaultTimeout = 5 * time.Minute

// noResponse is the code of an attempt that got no answer.
const noResponse = -1

func newPolicy(d eventingduckv1.DeliverySpec) (policy, error) {
	p := policy{timeout: defaultTimeout, backoff: func(int) time.Duration { return 0 }}
	if d.Retry != nil {
		p.retries = int(*d.Retry)
	}
	delay, err := duration("backoffDelay", d.BackoffDelay)
	if err != nil {
		return p, err
	}
	if d.BackoffPolicy != nil {
		switch *d.BackoffPolicy {
		case eventingduckv1.BackoffPolicyLinear: // the first retry comes at once
			p.backoff = func(retry int) time.Duration { return delay * time.Duration(retry) }
		case eventingduckv1.BackoffPolicyExponential:
			p.backoff = func(retry int) time.Duration { return bounded(float64(delay) * math.Exp2(float64(retry))) }
		}
	}
	timeout, err := duration("timeout", d.Timeout)
	if err != nil {
		return p, err
	}
	if timeout > 0 {
		p.timeout = timeout
	}
	p.retryAfterMax, err = duration("retryAfterMax", d.RetryAfterMax)
	return p, err
}

// bounded keeps a product that outgrows time.Duration from becoming negative.
func bounded(ns float64) time.Duration { return time.Duration(min(ns, float64(24*time.Hour))) }

func duration(field string, text *string) (time.Duration, error) {
	if text == nil {
		return 0, nil
	}
	p, err := period.Parse(*text)
	if err != nil {
		return 0, fmt.Errorf("delivery.%s: %w", field, err)
	}
	d, _ := p.Duration()
	return d, nil
}

// repeatable reports whether to try again after an answer: none at all, 5xx, and the 4xx that are transient.
func repeatable(code int) bool {
	switch code {
	case noResponse, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return code >= http.StatusInternalServerError
}

// wait returns how long to wait before retry number n after the answer r.
func (p policy) wait(n int, r result) time.Duration {
	wait := p.backoff(n)
	if r.code == http.StatusTooManyRequests || r.code == http.StatusServiceUnavailable {
		wait = max(wait, min(retryAfter(r.header), p.retryAfterMax))
	}
	return wait
}

// retryAfter reads the header in either of its forms (RFC 9110 §10.2.3); 0 if there is none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
