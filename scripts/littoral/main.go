// Littoral is the command line; see package shell.
package main

import (
	"os"

	"github.com/littoral-project/littoral/shared/shell"
)

func main() { os.Exit(shell.Main()) }
