// The command serve serves a model for tests in other languages. It prints its address and its key
// as a line of JSON, and ends with its standard input.
package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

func main() {
	m, stop := model.Start()
	defer stop()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"url": m.URL, "key": m.Key}) // a closed output has no reader
	_, _ = io.Copy(io.Discard, os.Stdin)
}
