// Package dialect knows the languages that applications are written in, and decodes each into the neutral model of
// package appmodel. The dialect is stored with the application, since the document is.
//
// Another language joins by a package that reads it and an entry in the table here; nothing after decoding asks which
// one it was, but for answers in its own words.
package dialect

import (
	"maps"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// decoder reads the documents of one dialect, in the three ways of the functions below. All return a *problem.Error with every fault at its path, and together
// with Invalid what could be read.
type decoder struct {
	submitted func([]byte) (*appmodel.Application, error)
	stored    func([]byte) (*appmodel.Application, error)
	header    func([]byte) (*appmodel.Application, error)
}

var decoders = map[appmodel.Dialect]decoder{
	appmodel.ICOS:   {descriptor.Parse, descriptor.ParseStored, descriptor.ParseHeader},
	appmodel.CODECO: {codecoapp.Parse, codecoapp.ParseStored, codecoapp.ParseHeader},
}

// Of tells the dialect of a document that is handed in: a CodecoApp says so by its kind, all else is a descriptor.
func Of(document []byte) appmodel.Dialect {
	if codecoapp.Is(document) {
		return appmodel.CODECO
	}
	return appmodel.ICOS
}

// Decode reads a document that is handed in: everything that it names must be there.
func Decode(d appmodel.Dialect, document []byte) (*appmodel.Application, error) {
	return decode(d, document, func(of decoder) func([]byte) (*appmodel.Application, error) { return of.submitted })
}

// DecodeStored reads a document that was accepted before, without the rules that were added since.
func DecodeStored(d appmodel.Dialect, document []byte) (*appmodel.Application, error) {
	return decode(d, document, func(of decoder) func([]byte) (*appmodel.Application, error) { return of.stored })
}

// DecodeHeader reads a document that is only asked about: what its components run may be missing.
func DecodeHeader(d appmodel.Dialect, document []byte) (*appmodel.Application, error) {
	return decode(d, document, func(of decoder) func([]byte) (*appmodel.Application, error) { return of.header })
}

func decode(
	d appmodel.Dialect, document []byte, way func(decoder) func([]byte) (*appmodel.Application, error),
) (*appmodel.Application, error) {
	of, known := decoders[d]
	if !known {
		return nil, problem.New(problem.Invalid, "the dialect %q cannot be read here; known are %s", d, Known())
	}
	return way(of)(document)
}

// Known lists the dialects that can be read.
func Known() string {
	var names []string
	for _, d := range slices.Sorted(maps.Keys(decoders)) {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}
