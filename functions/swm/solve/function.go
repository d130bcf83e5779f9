// Package solve serves the solver's interface of CODECO's scheduler over gRPC.
package solve

import (
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/swm/solve"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
)

// Spec declares the function. Tools like grpcurl ask by reflection what there is.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "POST /Solver/Solve", Role: auth.Viewer},
		{Pattern: "POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role: auth.Viewer},
	},
	GRPC: true, Stream: function.Stream{For: 2 * solve.MaxLimit, AtOnce: 2},
	Class:     function.RPC,
	Storeless: true,
}

// Function is the service.
type Function struct{ server *grpc.Server }

// New returns the function.
func New(*function.Env) (*Function, error) {
	f := &Function{grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest))}
	f.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "Solver", HandlerType: (*any)(nil), Metadata: "solver.proto",
		Streams: []grpc.StreamDesc{{StreamName: "Solve", ServerStreams: true, Handler: handle}},
	}, f)
	reflection.RegisterV1(f.server)
	return f, nil
}

// maxRequest is the largest model that is taken.
const maxRequest = 16 << 20

func handle(_ any, s grpc.ServerStream) error {
	r := new(pb.Request)
	if err := s.RecvMsg(r); err != nil {
		return err
	}
	return solve.Solve(s.Context(), r, func(answer *pb.Reply) error { return s.SendMsg(answer) })
}

// Handle serves a call.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	f.server.ServeHTTP(w, r)
	return nil
}
