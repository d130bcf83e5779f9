package descriptor

import (
	"math/big"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/problem"
)

// Reading says what a document is read for.
type Reading int

// The readings, as in Parse, ParseStored and ParseHeader.
const (
	Submitted Reading = iota
	Stored
	Header
)

// Load returns the trees of the YAML documents in doc, bounded and made plain as for a descriptor. No node may be
// changed: those behind an alias are shared. What is wrong with the trees, such as a key that is there twice, is added
// to the faults. The error is that of Parse for what cannot be read at all.
func Load(doc []byte, faults *problem.Faults) ([]*yaml.Node, error) { return load(doc, faults) }

// Translated reads a descriptor that another dialect made of the nodes of its own document. Lines are those of that
// document; paths are those of the descriptor, which the dialect translates back. No dialect makes compose files.
func Translated(tree *yaml.Node, as Reading) (*appmodel.Application, error) {
	r := reader{stored: as == Stored, header: as == Header}
	return r.read([]*yaml.Node{tree})
}

// Quantity returns the exact value of a number as Kubernetes writes it: 5M, 10e-3, 0.5.
func Quantity(text string) (*big.Rat, error) { return parseQuantity(text, false) }

// Plain returns a tree of Load in the types of encoding/json, with int64 for whole numbers.
func Plain(n *yaml.Node) any { return plain(n) }
