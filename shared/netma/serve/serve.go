// Package serve is how the operations on the network read what they are asked.
package serve

import (
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/problem"
)

// Question reads the body of a request of ALTO, which has the media type accepts and takes an answer of the other one. What cannot be
// parsed is answered at once, in ALTO's own form; asked is false then.
func Question[Q any](
	w http.ResponseWriter, r *http.Request, accepts, answers string, parse func([]byte) (Q, *alto.Error),
) (q Q, asked bool, err error) {
	if err := exposure.Check(r, accepts, answers); err != nil {
		return q, false, err
	}
	body, err := function.Body(r)
	if err != nil && problem.KindOf(err) != problem.Malformed { // ALTO has a form of its own for an empty body
		return q, false, err
	}
	q, fault := parse(body)
	if fault != nil {
		return q, false, fault.Write(w)
	}
	return q, true, nil
}

// Answer writes what came of a question; an error of ALTO in ALTO's own form.
func Answer(w http.ResponseWriter, media string, text []byte, err error) error {
	var fault *alto.Error
	switch {
	case errors.As(err, &fault):
		return fault.Write(w)
	case err != nil:
		return err
	}
	return alto.Write(w, media, text)
}

// Ends are the nodes a and b of the path. The error is NotFound if the network has no such node.
func Ends(r *http.Request, v *view.View) (a, b string, err error) {
	a, b = r.PathValue("a"), r.PathValue("b")
	for _, name := range []string{a, b} {
		if !v.Has(name) {
			return a, b, problem.New(problem.NotFound, "the network has no node %q", problem.Brief(name, 60))
		}
	}
	return a, b, nil
}
