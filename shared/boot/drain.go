package boot

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// drainer answers the kubelet's probes and passes everything else on. Once it drains, probes fail, so that no new
// callers come, and each open connection is closed with its next answer: otherwise calls would come by it for as long
// as it is open. It does what the drainer of knative.dev/pkg does, which would bring zap, a second HTTP/2 and parts of
// the Kubernetes libraries into each function, a twentieth of its image.
type drainer struct {
	inner    http.Handler
	draining atomic.Bool
	last     atomic.Pointer[time.Time] // when the last request came that was not a probe
}

func (d *drainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	draining := d.draining.Load()
	switch {
	case !strings.HasPrefix(r.UserAgent(), "kube-probe/"):
		now := time.Now()
		d.last.Store(&now)
		if draining {
			w.Header().Set("Connection", "close")
		}
		d.inner.ServeHTTP(w, r)
	case draining:
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// drain returns when no request has come for the quiet period, which begins now.
func (d *drainer) drain(quiet time.Duration) {
	now := time.Now()
	d.last.Store(&now)
	d.draining.Store(true)
	for left := quiet; left > 0; left = quiet - time.Since(*d.last.Load()) {
		time.Sleep(left)
	}
}
