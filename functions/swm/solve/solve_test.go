package solve_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// one is a request for one workload and one node.
var one = &pb.Request{Model: &pb.Model{
	Infrastructure: &pb.Infrastructure{Nodes: []*pb.Node{{Id: "shore", CPU: &pb.Resource{Capacity: 100}, Memory: &pb.Resource{Capacity: 100}}}},
	AppGroup:       &pb.ApplicationGroup{Applications: []*pb.Application{{Id: "shop", Workloads: []*pb.Workload{{Id: "web", CPU: 50}}}}},
}}

// TestASchedulerCallsTheSolver over gRPC without TLS, as CODECO's scheduler does.
func TestASchedulerCallsTheSolver(t *testing.T) {
	t.Parallel()
	sys := inprocess.Start(t)
	at, err := url.Parse(sys.URL)
	require.NoError(t, err)
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	viewer := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+sys.Token(auth.Viewer))

	call := func(ctx context.Context) (*pb.Reply, error) {
		s, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/Solver/Solve")
		require.NoError(t, err)
		if err := s.SendMsg(one); err != nil {
			return nil, s.RecvMsg(new(pb.Reply))
		}
		require.NoError(t, s.CloseSend())
		answer := new(pb.Reply)
		return answer, s.RecvMsg(answer)
	}
	answer, err := call(viewer)
	require.NoError(t, err)
	require.True(t, answer.GetFeasible(), "%v", answer.GetErrors())
	require.Equal(t, "shore", answer.GetAssignment().GetWorkloads()[0].GetNode())

	_, err = call(t.Context())
	require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)

	asked, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(viewer)
	require.NoError(t, err)
	require.NoError(t, asked.Send(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "Solver"},
	}))
	told, err := asked.Recv()
	require.NoError(t, err)
	require.Len(t, told.GetFileDescriptorResponse().GetFileDescriptorProto(), 1, "%v", told.GetErrorResponse())
}
