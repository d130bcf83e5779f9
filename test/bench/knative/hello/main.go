// Command hello is the least that a Knative Service can be: it answers, and does nothing else. What it takes from zero
// is what the platform takes.
package main

import (
	"log"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil)) //nolint:gosec // for a measurement only
}
