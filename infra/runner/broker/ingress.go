package broker

import (
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/trace"
)

// Ingress accepts events at POST /<namespace>/<broker>, in binary or structured mode, and answers 202 when they are
// stored.
func (b *Broker) Ingress() http.Handler {
	router := function.NewRouter()
	router.Handle("POST /{namespace}/{broker}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := events.FromRequest(r)
		if err == nil {
			to := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("broker")}
			err = b.Ingest(r.Context(), to, e)
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	return router
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	problem.Write(w, store.Classify(err), trace.ID(trace.Start(r.Context(), r.Header.Get("Traceparent"))))
}
