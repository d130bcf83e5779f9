package topology

import (
	"bytes"
	"errors"
	"strings"
)

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

var errNoObject = errors.New("what is stored of a node is no JSON object")

// members calls each for every member of a JSON object, in order; the key is as it is written between its quotation marks. A
// picture has thousands of documents of which little is wanted, so they are cut up rather than decoded.
func members(object []byte, each func(key, value []byte) error) error {
	rest := bytes.TrimLeft(object, space)
	if len(rest) == 0 || rest[0] != '{' {
		return errNoObject
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, space+",")
		if len(rest) > 0 && rest[0] == '}' {
			return nil
		}
		end := textEnd(rest)
		if end < 0 {
			return errNoObject
		}
		key := rest[1 : end-1]
		value, found := bytes.CutPrefix(bytes.TrimLeft(rest[end:], space), []byte(":"))
		value = bytes.TrimLeft(value, space)
		if end = valueEnd(value); !found || end <= 0 {
			return errNoObject
		}
		if err := each(key, bytes.TrimRight(value[:end], space)); err != nil {
			return err
		}
		rest = value[end:]
	}
}

const space = " \t\r\n"

// textEnd returns the end of the text that the JSON begins with, negative if there is none.
func textEnd(json []byte) int {
	if len(json) == 0 || json[0] != '"' {
		return -1
	}
	for i := 1; i < len(json); i++ {
		switch json[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// valueEnd returns where the value ends that the rest of an object begins with, negative if it does not.
func valueEnd(json []byte) int {
	depth := 0
	for i := 0; i < len(json); i++ {
		switch json[i] {
		case '"':
			end := textEnd(json[i:])
			if end < 0 {
				return -1
			}
			i += end - 1
		case '{', '[':
			depth++
		case ',':
			if depth == 0 {
				return i
			}
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}
