package form

import (
	"net"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A Link is an address that a person is asked to open.
type Link struct {
	Host     string   // its host, with the port; "" if unknown
	Warnings []string // what to check before opening it, in words
}

// LinkOf parses an address, and opens nothing.
func LinkOf(address string) Link {
	u, err := url.Parse(address)
	if err != nil {
		return Link{Warnings: []string{"this is no address that can be read"}}
	}
	l := Link{Host: u.Host}
	warn := func(is bool, words string) {
		if is {
			l.Warnings = append(l.Warnings, words)
		}
	}
	name := u.Hostname()
	warn(u.Host == "", "it does not say which host it leads to")
	warn(u.Scheme != "https" && u.Scheme != "http", "it is no web address")
	warn(u.Scheme == "http" && !isLocal(name), "what is sent there can be read on the way: it is http, not https")
	warn(u.User != nil, "the text before the @ is not the host; the host is "+u.Host)
	warn(hasPunycode(name), "the name of the host is written in Punycode: it may be shown as another one")
	warn(!isASCII(name), "the name of the host has letters that may look like others")
	warn(net.ParseIP(name) != nil && !isLocal(name), "the host is a bare address without a name")
	return l
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

func hasPunycode(host string) bool {
	for label := range strings.SplitSeq(strings.ToLower(host), ".") {
		if strings.HasPrefix(label, "xn--") {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
