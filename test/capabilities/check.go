package capabilities

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/littoral-project/littoral/shared/assets"
	"github.com/littoral-project/littoral/shared/problem"
)

// Check calls the functions with routes at the base URL, with a viewer's token.
func Check(t *testing.T, base, token string) {
	t.Helper()
	CheckStatic(t, base)
	CheckStream(t, base, token)
	CheckGRPC(t, base, token)
}

// CheckStatic gets the page, a file that may be kept, and one that is not there.
func CheckStatic(t *testing.T, base string) {
	t.Helper()
	for path, want := range map[string]string{
		"/static/": "no-cache", "/static/some/view": "no-cache",
		"/static/app-0123456789ab.js": "public, max-age=31536000, immutable",
	} {
		resp := get(t, t.Context(), base+path, "")
		require.Equal(t, http.StatusOK, resp.StatusCode, path)
		require.Equal(t, want, resp.Header.Get("Cache-Control"), path)
		require.Equal(t, assets.Policy, resp.Header.Get("Content-Security-Policy"), path)
		require.NoError(t, resp.Body.Close())
	}
	resp := get(t, t.Context(), base+"/static/gone.js", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

// CheckStream gets what is written to a stream while it goes on.
func CheckStream(t *testing.T, base, token string) {
	t.Helper()
	refused := get(t, t.Context(), base+"/stream", "")
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	require.Equal(t, problem.ContentType, refused.Header.Get("Content-Type"))
	require.NoError(t, refused.Body.Close())

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := get(t, ctx, base+"/stream", token)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: first\n", line)
}

// CheckGRPC calls a method that answers once, one that streams, and one without a token.
func CheckGRPC(t *testing.T, base, token string) {
	t.Helper()
	at, err := url.Parse(base)
	require.NoError(t, err)
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
	defer cancel()

	answer := new(wrapperspb.StringValue)
	require.NoError(t, connection.Invoke(ctx, "/test.Echo/Say", wrapperspb.String("hello"), answer))
	require.Equal(t, "hello", answer.GetValue())

	err = connection.Invoke(t.Context(), "/test.Echo/Say", wrapperspb.String("hello"), answer)
	require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)

	counting, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Echo/Count")
	require.NoError(t, err)
	require.NoError(t, counting.SendMsg(wrapperspb.String("count")))
	require.NoError(t, counting.CloseSend())
	require.NoError(t, counting.RecvMsg(answer))
	require.Equal(t, "one", answer.GetValue())
}

func get(t *testing.T, ctx context.Context, address, token string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	return resp
}
