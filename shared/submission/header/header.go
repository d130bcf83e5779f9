// Package header reads applications that are only asked about, where the components count and no policy does. It is apart from
// package submission so that whatever only asks links no parser of PromQL.
package header

import (
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/dialect"
)

// Read reads a document as dialect.DecodeHeader does, with its compose files.
func Read(document []byte) (*appmodel.Application, error) {
	return dialect.DecodeHeader(dialect.Of(document), document, compose.Read)
}
