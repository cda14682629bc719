//go:build !unix

package checkpoint

import "errors"

func readable(string) bool { return true }

var errNotDirectory = errors.New("not a directory")
