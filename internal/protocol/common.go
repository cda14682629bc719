package protocol

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/server"
)

// Success is the result of what either works or is an error.
type Success struct {
	Success bool `json:"success"`
}

// NotEmpty refuses an empty parameter, with an error of server.InvalidParam.
func NotEmpty(param, value string) error {
	if strings.TrimSpace(value) != "" {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "a string that is not empty", Received: "an empty string"})
}

// NotEmptyIfGiven is NotEmpty for a parameter that may be absent.
func NotEmptyIfGiven(param string, value *string) error {
	if value == nil {
		return nil
	}
	return NotEmpty(param, *value)
}
