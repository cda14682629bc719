//go:build !unix

package main

import "os"

// windowChanges tells nothing here: there is no signal for it.
func windowChanges() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
