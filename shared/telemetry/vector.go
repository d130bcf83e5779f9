package telemetry

import (
	"bytes"
	"context"
	"net/url"
	"strconv"
	"time"

	jsoniter "github.com/json-iterator/go"

	"github.com/littoral-project/littoral/shared/problem"
)

// Row is one element of an instant vector while that is read. Its texts are valid until the next one only.
type Row struct {
	Value float64 // may be NaN or infinite

	names, values [][]byte
}

// Label returns the value of a label; empty if there is none.
func (r *Row) Label(name string) []byte {
	for i, n := range r.names {
		if string(n) == name {
			return r.values[i]
		}
	}
	return nil
}

// Each evaluates a query at the instant and yields the elements one after the other, without keeping them: it is for
// answers with one element for each host. The error is as of Query; some elements may have been yielded then.
func (c *Client) Each(ctx context.Context, query string, at time.Time, yield func(*Row)) error {
	_, err := c.ask(ctx, c.query, "vector", url.Values{
		"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)},
	}, yield)
	return err
}

// vector reads all elements. There may be hundreds of thousands of labels, most of them many times, so every text is
// stored once.
func vector(raw []byte) ([]Sample, error) {
	texts := map[string]string{}
	once := func(b []byte) string {
		if known, ok := texts[string(b)]; ok {
			return known
		}
		s := string(b)
		texts[s] = s
		return s
	}
	samples := []Sample{}
	err := scan(raw, func(r *Row) {
		s := Sample{Labels: make(map[string]string, len(r.names)), Value: r.Value}
		for i, name := range r.names {
			s.Labels[once(name)] = once(r.values[i])
		}
		samples = append(samples, s)
	})
	if err != nil {
		return nil, err
	}
	return samples, nil
}

// scan parses [{"metric": {label: value}, "value": [epoch seconds, "number as text"]}]. It is written out since a look at
// thousands of nodes spends most of its time here: texts are parts of raw, unless they have escapes.
func scan(raw []byte, yield func(*Row)) error {
	s := scanner{rest: raw}
	s.rows(yield)
	return s.err
}

func (s *scanner) rows(yield func(*Row)) {
	var row Row
	s.list(func() {
		row.names, row.values = row.names[:0], row.values[:0]
		var value []byte
		s.object(func(key []byte) {
			switch string(key) {
			case "metric":
				s.object(func(label []byte) {
					row.names = append(row.names, label)
					row.values = append(row.values, s.text())
				})
			case "value":
				i := 0
				s.list(func() {
					if i == 1 && s.next() == '"' {
						value = s.text()
					} else {
						s.skip()
					}
					i++
				})
			default:
				s.skip()
			}
		})
		if s.err == nil {
			row.Value, s.err = number(string(value))
		}
		if s.err == nil {
			yield(&row)
		}
	})
}

// scanner reads JSON from the front. After an error it reads nothing more.
type scanner struct {
	rest []byte
	err  error
}

func (s *scanner) fail() {
	if s.err == nil {
		s.err = problem.New(problem.Unavailable, "the telemetry store answered what is no vector")
	}
	s.rest = nil
}

// next returns the next character that is no white space, without reading it; 0 at the end.
func (s *scanner) next() byte {
	for i, c := range s.rest {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.rest = s.rest[i:]
			return c
		}
	}
	return 0
}

// step reads this character.
func (s *scanner) step(c byte) {
	if s.next() != c {
		s.fail()
		return
	}
	s.rest = s.rest[1:]
}

// list calls each for every element, which it must read.
func (s *scanner) list(each func()) { s.within('[', ']', each) }

// object calls each for every value, which it must read, with its key.
func (s *scanner) object(each func(key []byte)) {
	s.within('{', '}', func() {
		key := s.text()
		s.step(':')
		if s.err == nil {
			each(key)
		}
	})
}

func (s *scanner) within(open, closing byte, each func()) {
	s.step(open)
	if s.err == nil && s.next() == closing {
		s.rest = s.rest[1:]
		return
	}
	for s.err == nil {
		if each(); s.err != nil {
			return
		}
		switch s.next() {
		case ',':
			s.rest = s.rest[1:]
		case closing:
			s.rest = s.rest[1:]
			return
		default:
			s.fail()
		}
	}
}

// word reads a string; anything else is none.
func (s *scanner) word() string {
	if s.next() == '"' {
		return string(s.text())
	}
	s.skip()
	return ""
}

// raw reads any value and returns it as it is written.
func (s *scanner) raw() []byte {
	s.next()
	from := s.rest
	s.skip()
	return from[:len(from)-len(s.rest)]
}

// text reads a string.
func (s *scanner) text() []byte {
	if s.step('"'); s.err != nil {
		return nil
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		s.fail()
		return nil
	}
	if bytes.IndexByte(s.rest[:end], '\\') < 0 {
		text := s.rest[:end]
		s.rest = s.rest[end+1:]
		return text
	}
	for ; end < len(s.rest) && s.rest[end] != '"' || odd(s.rest[:end]); end++ {
		if end >= len(s.rest) {
			s.fail()
			return nil
		}
	}
	var text string
	if end >= len(s.rest) || jsoniter.Unmarshal([]byte(`"`+string(s.rest[:end])+`"`), &text) != nil {
		s.fail()
		return nil
	}
	s.rest = s.rest[end+1:]
	return []byte(text)
}

// odd reports whether what follows is escaped: there is an odd number of backslashes before it.
func odd(before []byte) bool {
	n := 0
	for n < len(before) && before[len(before)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// skip reads any value.
func (s *scanner) skip() {
	switch s.next() {
	case '{':
		s.object(func([]byte) { s.skip() })
	case '[':
		s.list(s.skip)
	case '"':
		s.text()
	default:
		i := bytes.IndexAny(s.rest, ",]} \n\t\r")
		if i <= 0 {
			s.fail()
			return
		}
		s.rest = s.rest[i:]
	}
}
