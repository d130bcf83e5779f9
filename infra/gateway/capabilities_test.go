package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/test/capabilities"
	"github.com/littoral-project/littoral/test/inprocess"
)

// through is a gateway in front of the functions, each a server of its own. stopping ends its streams.
func through(t *testing.T, stopping context.Context, verifier *auth.Verifier) string {
	t.Helper()
	hosts := map[string]string{}
	var routes []route
	for name, entry := range capabilities.Entries(func(string) {}) {
		h, err := entry.Handler(function.Platform{Auth: verifier}.Env(name))
		require.NoError(t, err)
		hosts[name] = strings.TrimPrefix(serve(t, h), "http://")
		for _, pattern := range entry.Spec.Patterns() {
			words := append([]string{name}, strings.Fields(pattern)...)
			if entry.Spec.Streams() {
				words = append(words, fmt.Sprintf("stream=%s/%d", entry.Spec.Stream.For, entry.Spec.Stream.AtOnce))
			}
			if entry.Spec.GRPC {
				words = append(words, "grpc")
			}
			r, err := parse(words)
			require.NoError(t, err)
			routes = append(routes, r)
		}
	}
	h, err := newHandler(routes, options{
		host: func(name string) string { return hosts[name] }, way: ways(), most: 1, stopping: stopping,
	})
	require.NoError(t, err)
	return serve(t, h)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = boot.Protocols()
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func TestStaticFilesStreamsAndGRPCPassTheGateway(t *testing.T) {
	t.Parallel()
	issuer := inprocess.NewIssuer(t)
	capabilities.Check(t, through(t, t.Context(), issuer.Verifier()), issuer.Token(t, auth.Viewer))
}

// TestStreamsHaveALimitOfTheirOwn: two are open, as many as test-stream may have, and take no room of other calls.
func TestStreamsHaveALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	issuer := inprocess.NewIssuer(t)
	stopping, stop := context.WithCancel(t.Context())
	base, token := through(t, stopping, issuer.Verifier()), issuer.Token(t, auth.Viewer)
	open := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/stream", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	first, second := open(), open()
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.Equal(t, http.StatusOK, second.StatusCode)
	require.Equal(t, http.StatusServiceUnavailable, open().StatusCode)
	capabilities.CheckStatic(t, base)
	capabilities.CheckGRPC(t, base, token)

	stop()
	buffer := make([]byte, 1024)
	for _, stream := range []*http.Response{first, second} {
		var err error
		for err == nil {
			_, err = stream.Body.Read(buffer)
		}
	}
}
