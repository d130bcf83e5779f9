package cli

// Leaves are the commands that do something, in words.
func Leaves() []string {
	var cli commands
	parser, err := newParser(&Shell{}, &cli, "littoral")
	if err != nil {
		panic(err)
	}
	var all []string
	for _, leaf := range parser.Model.Leaves(false) {
		all = append(all, pathOf(leaf))
	}
	return all
}

// MinorsApart is minorsApart, for tests of what no cluster needs.
var MinorsApart = minorsApart
