package main

import (
	"net/http"
	"sync"
	"time"
)

// clock compares the host's clock with that of whoever receives what is pushed, by the Date of its answers. It is right to a second: a
// Date has whole seconds, and the way there need not take as long as the way back.
type clock struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	skew *float64 // seconds that this host is ahead; nil = not known
}

func (c *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := c.now()
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answered := c.now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		ahead := sent.Add(answered.Sub(sent) / 2).Sub(date.Add(time.Second / 2)).Seconds()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.skew = &ahead
	}
	return resp, nil
}

func (c *clock) ahead() (float64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skew == nil {
		return 0, false
	}
	return *c.skew, true
}
