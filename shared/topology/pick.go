package topology

import "strings"

// picked are the keys that are wanted of a node, each with those wanted of what is in it; nil = all of it.
type picked map[string]map[string]bool

// pick reads keys as View has them; nil picks all. A node is never without its name.
func pick(keys []string) picked {
	if keys == nil {
		return nil
	}
	of := picked{"name": nil}
	for _, key := range keys {
		outer, inner, within := strings.Cut(key, ".")
		wanted, known := of[outer]
		switch {
		case !within:
			of[outer] = nil
		case !known:
			of[outer] = map[string]bool{inner: true}
		case wanted != nil:
			wanted[inner] = true
		}
	}
	return of
}
