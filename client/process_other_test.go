//go:build !unix

package client_test

func process(string) {}
