// Package submission reads applications that are handed in. It and package header alone give the descriptor the reader of compose
// files, whose library takes 3 MiB: whatever reads only what is stored must import neither.
package submission

import (
	"context"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/submission/header"
)

// Read reads a document that is to be stored. The error is that of admit.Settings.Application.
func Read(ctx context.Context, s admit.Settings, document []byte, strict bool) (*appmodel.Application, error) {
	app, err := dialect.Decode(dialect.Of(document), document, compose.Read)
	return s.Application(ctx, app, err, strict)
}

// ReadQuestion is Read for a document that is only asked about, as in dialect.DecodeHeader.
func ReadQuestion(ctx context.Context, s admit.Settings, document []byte) (*appmodel.Application, error) {
	app, err := header.Read(document)
	return s.Application(ctx, app, err, false)
}
