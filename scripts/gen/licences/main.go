// Command licences lists the modules that our programs link, with their licences, in shared/docs/licences.md. It runs in
// the root of the tree.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/littoral-project/littoral/scripts/licences"
)

const page = "shared/docs/licences.md"

func main() {
	modules, err := licences.Linked(".")
	if err != nil {
		log.Fatal(err)
	}
	b := &strings.Builder{}
	b.WriteString("# Licences\n\nWhat our programs link: functions, the command line, the laptop host, agents and the programs of a deployment. \"make generate\"\n" +
		"writes this page from the texts in the modules; `test/tree` fails if it is not of this tree, or if a licence is one of those that\n" +
		"must not be linked (GPL and its kin, BUSL, SSPL, Elastic). The text of a module may name more than one, for its parts.\n\n" +
		"| Module | Version | Licences |\n|---|---|---|\n")
	for _, m := range modules {
		list := make([]string, len(m.Licences))
		for i, l := range m.Licences {
			list[i] = string(l)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(list, ", "))
	}
	if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}
