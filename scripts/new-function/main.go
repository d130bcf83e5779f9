// New-function creates a function that compiles, passes the checks of test/tree and is to be completed:
//
//	make new-function NAME=jobmanager/group-pause
//	make new-function NAME=topologyexporter/follow KIND=reaction ON=application.placed
//	make new-function NAME=lighthouse/expire KIND=task
//	make new-function NAME=events/stream KIND=stream
//
// It writes the function and its test. An operation or a stream gets a stub in shared/api/openapi.yaml; a reaction its Trigger, a task
// its PingSource in triggers/. "make generate" does the rest.
package main

import (
	"bytes"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "the root of the tree")
	kind := flag.String("kind", "operation", "operation, reaction, task or stream")
	on := flag.String("on", "application.placed", "the event type that wakes a reaction, without dev.littoral. and .v1")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: make new-function NAME=component/operation [KIND=operation|reaction|task|stream] [ON=application.placed]")
	}
	made, err := files(*root, flag.Arg(0), *kind, *on)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		file := filepath.Join(*root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // source is for everyone to read
			log.Fatal(err)
		}
		if err := os.WriteFile(file, made[name], 0o644); err != nil { // source is for everyone to read
			log.Fatal(err)
		}
		fmt.Println(name)
	}
	fmt.Println("Fill these in, then: make generate && make test")
}

//go:embed templates
var templates embed.FS

var stubs = template.Must(template.New("").Funcs(template.FuncMap{
	"camel": func(s string) string { return camel(s, "-") },
}).ParseFS(templates, "templates/*"))

// function is what the templates know.
type function struct {
	Component, Operation, Package string
	Event, Const, Data            string // of a reaction: its type in short, its constant and the type of its data in package events
	Tag                           string // of an operation or stream, in openapi.yaml
	Stream                        bool
}

// Name is the function's name: that of its Service, image and log field.
func (f function) Name() string { return f.Component + "-" + f.Operation }

var form = regexp.MustCompile(`^[a-z][a-z0-9]*/[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// files returns the new and changed files of the tree, by their names within root.
func files(root, name, kind, on string) (map[string][]byte, error) {
	if !form.MatchString(name) {
		return nil, fmt.Errorf("%q is not component/operation in lower case, with hyphens in the operation only", name)
	}
	f := function{Stream: kind == "stream"}
	f.Component, f.Operation, _ = strings.Cut(name, "/")
	f.Package = strings.ReplaceAll(f.Operation, "-", "")
	switch {
	case !slices.Contains([]string{"operation", "reaction", "task", "stream"}, kind):
		return nil, fmt.Errorf("there is no kind %q: choose operation (HTTP), reaction (an event), task (a schedule) or stream (HTTP answers that go on)", kind)
	case len(f.Name()) > 40:
		return nil, fmt.Errorf("%s has more than 40 characters, which is too long for a Knative Service", f.Name())
	}
	tree := tree{root: root, changed: map[string][]byte{}}
	components, err := tree.components()
	if err != nil {
		return nil, err
	}
	if components[f.Component] == "" {
		return nil, fmt.Errorf("there is no component %q: choose one of %s, or add it to functions/components.txt",
			f.Component, strings.Join(slices.Sorted(maps.Keys(components)), ", "))
	}
	dir := "functions/" + name
	if _, err := os.Stat(filepath.Join(root, dir)); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already", dir)
	}
	if kind == "reaction" {
		if err := f.react(&tree, on); err != nil {
			return nil, err
		}
	}
	if kind == "operation" || kind == "stream" {
		if err := tree.describe(&f, components[f.Component]); err != nil {
			return nil, err
		}
	} else if err := tree.wake(f, kind); err != nil {
		return nil, err
	}
	tree.changed[dir+"/function.go"] = f.fill(kind + ".go.tmpl")
	tree.changed[dir+"/function_test.go"] = f.fill(kind + "_test.go.tmpl")
	return tree.changed, nil
}

// fill returns a template with the function's names.
func (f function) fill(stub string) []byte {
	var b bytes.Buffer
	if err := stubs.ExecuteTemplate(&b, stub, f); err != nil {
		panic(err) // the templates are part of this program
	}
	return b.Bytes()
}

// dataOf is the type of an event's data in package events, by the first word of the event's type.
var dataOf = map[string]string{
	"application": "Application", "job": "Job", "resource": "Job", "topology": "Topology", "alert": "Alert", "policy": "Policy",
}

// react finds the event type that wakes a reaction.
func (f *function) react(t *tree, on string) error {
	thing, _, _ := strings.Cut(on, ".")
	f.Event, f.Const, f.Data = on, camel(on, "."), dataOf[thing]
	types, err := t.read("shared/events/types.go")
	if err != nil {
		return err
	}
	if f.Data == "" || !bytes.Contains(types, []byte("\t"+f.Const+" ")) || !bytes.Contains(types, []byte(`"dev.littoral.`+on+`.v1"`)) {
		return fmt.Errorf("there is no event type %q in shared/events/types.go; write it as in ON=application.placed", on)
	}
	return nil
}

// tree is the source tree with the files that are new or changed.
type tree struct {
	root    string
	changed map[string][]byte
}

func (t *tree) read(name string) ([]byte, error) {
	if text, ok := t.changed[name]; ok {
		return text, nil
	}
	return os.ReadFile(filepath.Join(t.root, name))
}

// components returns what each component does.
func (t *tree) components() (map[string]string, error) {
	text, err := t.read("functions/components.txt")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, does, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" && name != "#" {
			found[name] = strings.TrimSpace(does)
		}
	}
	return found, nil
}

const openAPI = "shared/api/openapi.yaml"

// describe adds an operation to the page of the API, under the tag of its component's other operations or, if there are
// none, under a new one.
func (t *tree) describe(f *function, does string) error {
	text, err := t.read(openAPI)
	if err != nil {
		return err
	}
	page := string(text)
	f.Tag = f.Component
	sibling := regexp.MustCompile(`(?m)^  /` + f.Component + `/.*\n    [a-z]+:\n      tags: \[([a-z]+)\]$`)
	for _, found := range sibling.FindAllStringSubmatch(page, -1) {
		if found[1] != "health" {
			f.Tag = found[1]
			break
		}
	}
	if !strings.Contains(page, "\n  - {name: "+f.Tag+",") {
		page, err = before(page, "\npaths:\n", fmt.Sprintf("  - {name: %s, description: %q}\n", f.Tag, sentence(does)))
		if err != nil {
			return err
		}
	}
	page, err = before(page, "\ncomponents:\n", string(f.fill("openapi.yaml.tmpl")))
	t.changed[openAPI] = []byte(page)
	return err
}

// wake adds the Trigger of a reaction or the PingSource of a task, and applies it.
func (t *tree) wake(f function, kind string) error {
	const list = "triggers/kustomization.yaml"
	text, err := t.read(list)
	if err != nil {
		return err
	}
	own := "  - " + f.Name() + ".yaml\n"
	entry := regexp.MustCompile(`(?m)^  - [a-z0-9-]+\.yaml\n`)
	at := entry.FindAllIndex(text, -1)
	if len(at) == 0 {
		return fmt.Errorf("%s lists no files", list)
	}
	place := at[len(at)-1][1] // after the last one, or before the first one that sorts after it
	for _, span := range at[1:] {
		if string(text[span[0]:span[1]]) > own {
			place = span[0]
			break
		}
	}
	t.changed[list] = slices.Concat(text[:place], []byte(own), text[place:])
	t.changed["triggers/"+f.Name()+".yaml"] = f.fill(kind + ".yaml.tmpl")
	return nil
}

// before inserts lines before the first line of mark, which begins with the line break before it.
func before(text, mark, lines string) (string, error) {
	head, tail, found := strings.Cut(text, mark)
	if !found {
		return "", fmt.Errorf("%s has no line %q", openAPI, strings.TrimSpace(mark))
	}
	return strings.TrimRight(head, "\n") + "\n" + lines + mark + tail, nil
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// camel joins the words of a name, each beginning with a capital: application.placed -> ApplicationPlaced.
func camel(name, between string) string {
	words := strings.Split(name, between)
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}
