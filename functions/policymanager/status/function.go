// Package status shows the state of all policies as a page for people.
package status

import (
	"bytes"
	"fmt"
	"html"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /polman/status", Role: auth.Viewer,
		Aliases: []string{"GET /status", "GET /polman/status/{$}", "GET /status/{$}"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// most is how many policies the page shows, and fewer when they are large.
const most = 1000

// Handle answers a plain HTML page.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	counts, err := policies.Count(r.Context(), f.db)
	if err != nil {
		return err
	}
	list, _, err := policies.List(r.Context(), f.db, policies.Filter{}, paging.Page{Limit: most})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(page(counts, list))
	return nil
}

const head = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Policies</title>
<style>body{font-family:sans-serif}td,th{padding:.2em .8em;text-align:left}</style></head><body><h1>Policies</h1>
`

// page writes the policies as a table. Every text in it is escaped.
func page(counts policies.Stats, list []*policies.Policy) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	fmt.Fprintf(&b, "<p>%d in all: %d enforced, %d violated, %d inactive, %d unknown</p>\n<table><tr><th>Policy</th>"+
		"<th>Phase</th><th>Application</th><th>Component</th><th>Remediation</th><th>Last event</th></tr>\n",
		counts.Total, counts.Enforced, counts.Violated, counts.Inactive, counts.Unknown)
	for _, p := range list {
		last := ""
		if n := len(p.Status.Events); n > 0 {
			last = string(p.Status.Events[n-1].Type) + " " + p.Status.Events[n-1].Timestamp.UTC().Format("2006-01-02 15:04:05")
		}
		b.WriteString("<tr>")
		for _, cell := range []string{
			p.Name, string(p.State.Phase), p.Subject.AppName, p.Subject.AppComponent, p.Action.Remediation(), last,
		} {
			b.WriteString("<td>" + html.EscapeString(cell) + "</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>")
	if n := int64(len(list)); n < counts.Total {
		fmt.Fprintf(&b, "<p>These are the oldest %d.</p>", n)
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}
