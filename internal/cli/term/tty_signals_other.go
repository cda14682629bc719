//go:build !unix

package term

import "os"

// Continued is not supported here, because shells do not stop jobs. The channel is nil.
func Continued() (again <-chan os.Signal, stop func()) { return nil, func() {} }

// Resized is not supported here, because there is no such signal. The channel is nil.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// Stopped is not supported here, because shells do not stop jobs. The channel is nil.
func Stopped() (stops <-chan os.Signal, stop func()) { return nil, func() {} }

// Stop does nothing here.
func Stop() {}
