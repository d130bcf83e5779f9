// Command hello is the minimum of a Knative Service: it answers, and does nothing else. Its time from zero is that of
// the platform.
package main

import (
	"log"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil)) // for a measurement only
}
