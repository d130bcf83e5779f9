// Littoral is the command line; see package shell.
package main

import (
	"os"

	"github.com/littoral-project/littoral/shared/cli"
)

func main() { os.Exit(cli.Main()) }
