package mesh_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/littoral-project/littoral/infra/runner/mesh"
)

func TestMesh(t *testing.T) {
	t.Parallel()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("outside"))
	}))
	defer outside.Close()
	m := mesh.New(http.DefaultTransport)
	host := mesh.ServiceHost(types.NamespacedName{Namespace: "littoral", Name: "echo"})
	m.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("secret")
		case "/hang":
			<-r.Context().Done()
		default:
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Path", r.URL.Path)
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X-Late", "lost")
			_, _ = w.Write(body)
		}
	}))
	client := &http.Client{Transport: m}
	post := func(ctx context.Context, url string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("hello"))
		require.NoError(t, err)
		return client.Do(r)
	}

	resp, err := post(t.Context(), "http://"+host)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "hello", string(body))
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	require.Equal(t, "/", resp.Header.Get("X-Path"))
	require.Empty(t, resp.Header.Get("X-Late"), "headers set after the answer began are not in it")

	resp, err = post(t.Context(), outside.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	_, err = post(t.Context(), "http://"+host+"/panic")
	require.ErrorContains(t, err, "panicked")

	gone := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err = post(ctx, "http://"+host+"/hang")
	require.ErrorIs(t, err, gone)
}

func TestWait_isForHandlersWhoseCallersGaveUp(t *testing.T) {
	t.Parallel()
	const host = "slow.littoral.svc.cluster.local"
	m := mesh.New(http.DefaultTransport)
	begun, end := make(chan struct{}), make(chan struct{})
	m.Handle(host, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-end
	}))
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-begun
		giveUp()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host, nil)
	require.NoError(t, err)
	_, err = m.RoundTrip(r)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, m.Wait(ctx), context.Canceled, "it runs on")
	close(end)
	require.NoError(t, m.Wait(t.Context()))
}

func TestResolve(t *testing.T) {
	t.Parallel()
	service := &duckv1.KReference{Kind: "Service", Namespace: "ns", Name: "x"}
	for want, d := range map[string]duckv1.Destination{
		"http://x.ns.svc.cluster.local":        {Ref: service},
		"http://x.ns.svc.cluster.local/there":  {Ref: service, URI: &apis.URL{Path: "/there"}},
		"http://" + mesh.IngressHost + "/ns/b": {Ref: &duckv1.KReference{Kind: "Broker", Namespace: "ns", Name: "b"}},
		"https://elsewhere.example/":           {URI: &apis.URL{Scheme: "https", Host: "elsewhere.example", Path: "/"}},
	} {
		got, err := mesh.Resolve(&d)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	_, err := mesh.Resolve(&duckv1.Destination{Ref: &duckv1.KReference{Kind: "Pod"}})
	require.Error(t, err)
}
