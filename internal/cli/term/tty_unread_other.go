//go:build !unix

package term

import "os"

// watchReader does nothing: nothing tells here.
func watchReader(*os.File, func()) (stop func()) { return func() {} }
