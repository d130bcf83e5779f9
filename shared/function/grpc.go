package function

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// codes are the status codes of gRPC (google.golang.org/grpc/codes) for the kinds of problems; what has none is Internal.
var codes = map[problem.Kind]int{
	problem.Malformed: 3, problem.Invalid: 3, problem.UnsupportedMedia: 3, problem.NotAcceptable: 3, problem.NotFound: 5,
	problem.Forbidden: 7, problem.TooLarge: 8, problem.PreconditionFailed: 9, problem.Conflict: 10,
	problem.MethodNotAllowed: 12, problem.Unavailable: 14, problem.Unauthenticated: 16,
}

const codeInternal = 13

// RefuseGRPC answers a call of gRPC with an error and nothing else: HTTP says 200, and the status is in the headers
// ("Trailers-Only" in gRPC's PROTOCOL-HTTP2). As in a problem document, the text of an internal error stays in the log.
func RefuseGRPC(w http.ResponseWriter, err error, traceID string) {
	code, found := codes[problem.KindOf(err)]
	document := problem.Of(err, traceID)
	text := document.Detail
	for _, field := range document.Errors {
		text += "; " + field.String()
	}
	if !found {
		code = codeInternal
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(code))
	w.Header().Set("Grpc-Message", percent(text+" (trace "+document.TraceID+")"))
	w.WriteHeader(http.StatusOK)
}

// percent encodes a status message: printable ASCII but "%" stands for itself.
func percent(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
