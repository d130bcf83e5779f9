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

// Forms are what each of them takes for -o; none where it takes no such flag.
func Forms() map[string][]string {
	var cli commands
	parser, err := newParser(&Shell{}, &cli, "littoral")
	if err != nil {
		panic(err)
	}
	all := map[string][]string{}
	for _, leaf := range parser.Model.Leaves(false) {
		all[pathOf(leaf)] = nil
		for _, flag := range leaf.Flags {
			if flag.Name == "output" && flag.Short == 'o' && flag.Default == string(asTable) {
				all[pathOf(leaf)] = flag.EnumSlice()
			}
		}
	}
	return all
}

// MinorsApart is minorsApart, for tests of what no cluster needs.
var MinorsApart = minorsApart
