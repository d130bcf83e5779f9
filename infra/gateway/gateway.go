package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
	"github.com/littoral-project/littoral/shared/wake"
)

// route says which Service takes the requests that fit a pattern of net/http's ServeMux, and who else is woken by them.
type route struct {
	service, pattern string
	wakes            string // "function,function"
}

// readTables reads every *.txt: a line is "service pattern", as in "jobmanager-job-get GET /jobmanager/jobs/{job_uuid}"
// or "issuer /oidc/" for all below; # begins a comment. After " > " stand the functions that such a call will need.
func readTables(dir fs.FS) ([]route, error) {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var routes []route
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for n := 1; lines.Scan(); n++ {
			line, _, _ := strings.Cut(lines.Text(), "#")
			line, wakes, _ := strings.Cut(line, " > ")
			service, pattern, ok := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case ok:
				routes = append(routes, route{service, strings.TrimSpace(pattern), strings.TrimSpace(wakes)})
			case service != "":
				return nil, fmt.Errorf("%s:%d: %q is not a service and a pattern", name, n, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(routes) == 0 {
		return nil, errors.New("there are no routes (*.txt)")
	}
	return routes, nil
}

// chains says by service whom its calls will need, as package wake reads it.
func chains(routes []route) string {
	var parts []string
	for _, r := range routes {
		if r.wakes != "" {
			parts = append(parts, r.service+"="+r.wakes)
		}
	}
	return strings.Join(parts, ";")
}

// newHandler serves the routes, and GET /healthz for itself. Host maps a service to its address.
func newHandler(
	routes []route, host func(service string) string, t http.RoundTripper, waker *wake.Waker,
) (_ http.Handler, err error) {
	defer func() {
		if p := recover(); p != nil { // ServeMux panics on a pattern that it cannot read or that contradicts another
			err = fmt.Errorf("routes: %v", p)
		}
	}()
	router := function.NewRouter()
	for _, r := range routes {
		router.Handle(r.pattern, waker.Handler(pass(host(r.service), t), r.service))
	}
	router.Handle("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	}))
	return router, nil
}

// pass hands requests to the service at host, whose name there is how Knative knows it. The caller's trace, or one made
// here, goes with them.
func pass(host string, t http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: t,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", host, host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // without what ReverseProxy cannot read, another question would be answered
			r.SetXForwarded()
			r.Out.Header.Del("Upgrade") // to a protocol in which calls would go past the table
			r.Out.Header.Del("Connection")
			if r.Out.Header.Get("Traceparent") == "" {
				r.Out.Header.Set("Traceparent", trace.Parent(trace.Start(r.In.Context(), "")))
			}
		},
		ModifyResponse: refuseFailures,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the caller has hung up
			}
			slog.WarnContext(r.Context(), "call failed", "service", host, "path", r.URL.Path, "error", err)
			problem.Write(w, problem.Wrap(problem.Unavailable, err, "the function cannot be reached; try again"), "")
		},
	}
}

// refuseFailures makes an error of what proxies on the way answer for a function that is starting, ending or cut off. A
// function's own errors are problem documents, and pass.
func refuseFailures(r *http.Response) error {
	switch r.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil
	}
	if r.Header.Get("Content-Type") == problem.ContentType {
		return nil
	}
	return errors.New("the way to the function answered " + r.Status)
}

// limit refuses calls beyond n at once: running out of memory would end the calls that are under way too. Probes do not count.
func limit(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == function.HealthPath {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			problem.Write(w, problem.New(problem.Unavailable, "%d calls are under way here, as many as fit; try again", n), "")
		}
	})
}
