// Package jsoncut cuts JSON up where little is wanted of many documents, which need not be decoded for that.
package jsoncut

import (
	"bytes"
	"errors"
)

var errNoObject = errors.New("this is no JSON object")

// Members calls each for every member of a JSON object, in order. The key is as it is written between its quotation marks, the
// value as it is; neither may be kept.
func Members(object []byte, each func(key, value []byte) error) error {
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
