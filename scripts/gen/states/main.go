// States writes the drawing and the table of the states of a job into shared/docs/states.md.
package main

import (
	"log"
	"os"
	"strings"

	"github.com/littoral-project/littoral/shared/job"
)

const page = "shared/docs/states.md"

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(page)
	if err != nil {
		log.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), "```mermaid\n")
	if !ok {
		log.Fatalf("%s has no drawing", page)
	}
	out := before + "```mermaid\n" + job.Drawing() + "```\n\n" + job.Moves()
	if err := os.WriteFile(page, []byte(out), 0o644); err != nil { // a page that everyone may read
		log.Fatal(err)
	}
}
