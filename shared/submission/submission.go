// Package submission reads applications that are handed in. It alone gives the descriptor the reader of compose files, whose
// library takes 3 MiB: whatever reads only what is stored must not import it.
package submission

import (
	"context"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/policy/admit"
)

// Read reads a document that is to be stored. The error is that of admit.Settings.Application.
func Read(ctx context.Context, s admit.Settings, document []byte, strict bool) (*appmodel.Application, error) {
	app, err := dialect.Decode(dialect.Of(document), document, compose.Read)
	return s.Application(ctx, app, err, strict)
}

// ReadQuestion is Read for a document that is only asked about, as in dialect.DecodeHeader.
func ReadQuestion(ctx context.Context, s admit.Settings, document []byte) (*appmodel.Application, error) {
	app, err := Header(document)
	return s.Application(ctx, app, err, false)
}

// Header reads a document that is only asked about, whatever its policies say.
func Header(document []byte) (*appmodel.Application, error) {
	return dialect.DecodeHeader(dialect.Of(document), document, compose.Read)
}
