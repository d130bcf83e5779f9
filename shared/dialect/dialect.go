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
	"github.com/littoral-project/littoral/shared/compose/reading"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// decoder reads the documents of one dialect, in the three ways of the functions below. All return a *problem.Error with every fault at its path, and together
// with Invalid what could be read.
type decoder struct {
	submitted decode
	stored    decode
	header    decode
}

// decode reads a document, and its compose files by the reader, which may be nil.
type decode func(document []byte, compose reading.Reader) (*appmodel.Application, error)

var decoders = map[appmodel.Dialect]decoder{
	appmodel.ICOS:   {descriptor.Parse, alone(descriptor.ParseStored), descriptor.ParseHeader},
	appmodel.CODECO: {alone(codecoapp.Parse), alone(codecoapp.ParseStored), alone(codecoapp.ParseHeader)},
}

// alone is a way to read documents in which no compose file is read.
func alone(read func(document []byte) (*appmodel.Application, error)) decode {
	return func(document []byte, _ reading.Reader) (*appmodel.Application, error) { return read(document) }
}

// Of tells the dialect of a document that is handed in: a CodecoApp says so by its kind, all else is a descriptor.
func Of(document []byte) appmodel.Dialect {
	if codecoapp.Is(document) {
		return appmodel.CODECO
	}
	return appmodel.ICOS
}

// Decode reads a document that is handed in: everything that it names must be there. Compose files are read by the reader.
func Decode(d appmodel.Dialect, document []byte, compose reading.Reader) (*appmodel.Application, error) {
	of, err := known(d)
	if err != nil {
		return nil, err
	}
	return of.submitted(document, compose)
}

// DecodeStored reads a document that was accepted before, without the rules that were added since.
func DecodeStored(d appmodel.Dialect, document []byte) (*appmodel.Application, error) {
	of, err := known(d)
	if err != nil {
		return nil, err
	}
	return of.stored(document, nil)
}

// DecodeHeader reads a document that is only asked about: what its components run may be missing. Without a reader nothing
// is known of its compose files.
func DecodeHeader(d appmodel.Dialect, document []byte, compose reading.Reader) (*appmodel.Application, error) {
	of, err := known(d)
	if err != nil {
		return nil, err
	}
	return of.header(document, compose)
}

func known(d appmodel.Dialect) (decoder, error) {
	of, known := decoders[d]
	if !known {
		return of, problem.New(problem.Invalid, "the dialect %q cannot be read here; known are %s", d, Known())
	}
	return of, nil
}

// Known lists the dialects that can be read.
func Known() string {
	var names []string
	for _, d := range slices.Sorted(maps.Keys(decoders)) {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}
