package terminal

import (
	"errors"
	"io/fs"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/server"
)

type kindData struct {
	Kind string `json:"kind"`
	Code string `json:"code,omitempty"`
}

func internalError(message string, data kindData) error {
	return server.NewError(jsonrpc2.CodeInternalError, "Internal error: "+message, data)
}

func noTerminal(id string) error {
	return server.NewError(jsonrpc2.CodeInvalidParams, "Invalid params: there is no terminal of that id, or it has ended", struct {
		server.ParamError
		Kind string `json:"kind"`
	}{server.ParamError{Param: "terminal_id", Expected: "the id of a terminal", Received: id}, "terminal_not_found"})
}

// withoutPath is an error of the system without the file's name: no path goes
// out.
func withoutPath(err error) error {
	if about := (*fs.PathError)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}
