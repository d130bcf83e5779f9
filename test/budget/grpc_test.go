package budget_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/images"
)

// TestWhatSpeaksGRPCIsBuiltForIt: images are built without HTTP/2, but for those that are called by it (.ko.yaml). Each answers a
// caller without a token by its own status, which it can only over HTTP/2.
func TestWhatSpeaksGRPCIsBuiltForIt(t *testing.T) {
	speaking := map[string]function.Spec{}
	for _, entry := range functions.Registry {
		if entry.Spec.GRPC {
			speaking[entry.Name] = entry.Spec
		}
	}
	require.NotEmpty(t, speaking)
	programs, err := images.Build(t.Context(), t.TempDir(), func(name string) bool { return speaking[name].GRPC })
	require.NoError(t, err)
	for name, program := range programs {
		p := start(t, program, storetest.URL(t))
		connection, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(p.url, "http://"),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		_, method, _ := strings.Cut(speaking[name].Routes[0].Pattern, " ")
		stream, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
		if err == nil {
			err = stream.RecvMsg(nil)
		}
		require.Equal(t, codes.Unauthenticated, status.Code(err), "%s: %v\n%s", name, err, p.log)
	}
}
