package appmodel

import "encoding/json"

// String is how an annotation of an object with pods says it.
func (d *DPE) String() string {
	text, _ := json.Marshal(d) // numbers always encode
	return string(text)
}
