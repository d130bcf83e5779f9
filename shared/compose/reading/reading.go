// Package reading is what the reader of compose files (package compose) says to the descriptor: so that what only reads stored
// descriptors does not link the library of the Compose specification. What a newcomer gets wrong: a place is in the text that
// was handed to the reader; the descriptor knows the line where that stands in the document.
package reading

// File is one compose file of a component.
type File struct{ Name, Text string }

// Place is a value in a file: the number of the file, and the keys that lead to the value, of a list the number of the entry.
type Place struct {
	File int
	Keys []string
}

// Finding is something to say about a value.
type Finding struct {
	Place

	Detail string
}

// Asked is what the services that run ask for together, and the places that say so.
type Asked struct {
	Amount int64
	At     []Place
}

// Component is what the compose files of a component say together.
type Component struct {
	Faults     []Finding // with one, only the warnings are complete
	Warnings   []Finding
	HostAccess []Finding // what the services would get of the machine that they run on
	CPUMilli   Asked     // rounded up
	Memory     Asked     // in bytes
}

// Reader reads the compose files of a component, each later one over the earlier ones.
type Reader func(files []File) Component
