package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// examples are those of commands whose own help has none.
var examples = map[string]string{
	"add controller":    "add controller -n harbour -a https://harbour.example",
	"apply":             "apply -f shop.yaml",
	"backup":            "backup littoral.zip",
	"completion":        "completion bash",
	"console":           "console",
	"create deployment": "create deployment --file shop.yaml",
	"delete app":        "delete app shop --timeout 1m",
	"delete deployment": "delete deployment --id shop",
	"describe app":      "describe app shop",
	"events":            "events shop --since 1h --type job.finished",
	"explain":           "explain app shop",
	"fleet cut":         "fleet cut edge",
	"fleet drain":       "fleet drain edge-1",
	"fleet heal":        "fleet heal edge",
	"fleet list":        "fleet",
	"fleet restore":     "fleet restore edge-1",
	"fleet set":         "fleet set edge-1 sca=30",
	"get apps":          "get apps -o wide",
	"get clusters":      "get clusters -o wide",
	"get deployment":    "get deployment",
	"get jobs":          "get jobs --state Finished",
	"get nodes":         "get nodes -o wide",
	"get policies":      "get policies --app shop",
	"get resource":      "get resource",
	"plan":              "plan -f shop.yaml",
	"replay":            "replay 3f2a91c0",
	"restore":           "restore littoral.zip",
	"start app":         "start app shop",
	"start deployment":  "start deployment --id shop",
	"stop app":          "stop app shop",
	"stop deployment":   "stop deployment --id shop",
	"submit":            "submit -f shop.yaml",
	"top apps":          "top apps",
	"top nodes":         "top nodes",
	"up":                "up --fleet generated:nodes=30,seed=1",
	"update deployment": "update deployment --id shop --file shop.yaml",
	"wait app":          "wait app shop --for=available",
}

// helpWithExample is kong's help, with an example of the command that it is about.
func helpWithExample(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil || strings.Contains(node.Help+node.Detail, "Example") {
		return nil
	}
	example, known := examples[pathOf(node)]
	if !known {
		return nil
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\nExample: littoral %s\n", example)
	return err
}

// pathOf is the words of a command.
func pathOf(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}
