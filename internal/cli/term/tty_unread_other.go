//go:build !unix

package term

import "os"

// watchReader is not supported here and does nothing.
func watchReader(*os.File, func()) (stop func()) { return func() {} }
