package config

import (
	"errors"
	"net"
)

// Web has the settings of `duet-rpc web`. Empty ones are its defaults.
type Web struct {
	Listen      string // a host and a port
	Certificate string // the path of a PEM file
	Key         string // the path of a PEM file
	Origin      string // the https address of a proxy in front
}

// Notify says how `duet-rpc web` notifies the user beside the notifications of browsers.
type Notify struct {
	Command []string
	Webhook string
	Content string // none, title or all; "": none
}

// checkListen checks the form of a listener's address.
func checkListen(text string) error {
	if _, _, err := net.SplitHostPort(text); err != nil {
		return errors.New("a host and a port, such as localhost:7311")
	}
	return nil
}
