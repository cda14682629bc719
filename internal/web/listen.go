package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// An Address is where a [Server] listens, and under which names browsers may reach it.
type Address struct {
	// Listen is a host and a port. Default: localhost:7311.
	Listen string
	// Certificate and Key are the paths of TLS files. "": plain HTTP, which only a loopback address may have.
	Certificate, Key string
	// Origin is the https address of a proxy in front, such as https://duet.example; "": none.
	Origin string
}

// DefaultListen is where a server listens by default.
const DefaultListen = "localhost:7311"

// errPlain is the error for an address that other machines reach without TLS.
var errPlain = errors.New("other machines could read along: `duet-rpc web` needs --certificate and --key there, or a proxy with TLS in front " +
	"(--origin https://NAME), or a loopback address such as " + DefaultListen)

// names are the names under which browsers reach a server.
type names struct {
	scheme string // of the listener: http or https
	port   string
	host   string            // of Listen
	leaf   *x509.Certificate // nil: plain HTTP
	origin *url.URL          // nil: there is no proxy
}

// listen opens the listener of an address.
func (a Address) listen(ctx context.Context) (net.Listener, *names, error) {
	host, port, err := net.SplitHostPort(cmp.Or(a.Listen, DefaultListen))
	if err != nil {
		return nil, nil, fmt.Errorf("--address: %w; it has to be a host and a port, such as %s", err, DefaultListen)
	}
	n := &names{scheme: "http", host: strings.ToLower(host)}
	if a.Origin != "" {
		if n.origin, err = url.Parse(a.Origin); err != nil || n.origin.Scheme != "https" || n.origin.Host == "" || strings.Trim(n.origin.Path, "/") != "" ||
			n.origin.RawQuery != "" || n.origin.User != nil {
			return nil, nil, fmt.Errorf("--origin has to be an address such as https://duet.example, not %q", a.Origin)
		}
		n.origin.Host = strings.ToLower(strings.TrimSuffix(n.origin.Host, ":443"))
	}
	if (a.Certificate == "") != (a.Key == "") {
		return nil, nil, errors.New("--certificate and --key belong together")
	}
	if a.Certificate == "" && n.origin == nil && !isLoopback(ctx, host) {
		return nil, nil, fmt.Errorf("%s is not a loopback address: %w", cmp.Or(host, "every address"), errPlain)
	}
	var config *tls.Config
	if a.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(a.Certificate, a.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("the TLS files: %w", err)
		}
		n.scheme, n.leaf = "https", pair.Leaf
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}} // WebSockets need it
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, nil, err
	}
	_, n.port, _ = net.SplitHostPort(listener.Addr().String()) // a TCP address has one
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener, n, nil
}

// isLoopback reports whether all addresses of a host are of this machine alone.
func isLoopback(ctx context.Context, host string) bool {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if host == "" || err != nil || len(found) == 0 {
		return false
	}
	for _, ip := range found {
		if !ip.Unmap().IsLoopback() {
			return false
		}
	}
	return true
}

// URL returns the address for a browser.
func (n *names) URL() string {
	if n.origin != nil {
		return "https://" + n.origin.Host
	}
	host := n.host
	if ip, err := netip.ParseAddr(host); (host == "" || err == nil && ip.IsUnspecified()) && n.leaf != nil && len(n.leaf.DNSNames) > 0 {
		host = strings.Replace(n.leaf.DNSNames[0], "*.", "", 1)
	}
	return n.scheme + "://" + net.JoinHostPort(cmp.Or(host, "localhost"), n.port)
}

// isSecure reports whether browsers reach the server by TLS.
func (n *names) isSecure() bool { return n.scheme == "https" || n.origin != nil }

// reachable reports whether other machines can reach it.
func (n *names) reachable(ctx context.Context) bool {
	return n.origin != nil || !isLoopback(ctx, n.host)
}

// allows reports whether a request may name this host and port. A page of another site that gives its own name the address of this
// machine (DNS rebinding) cannot.
func (n *names) allows(hostport string) bool {
	hostport = strings.ToLower(hostport)
	if n.origin != nil && strings.TrimSuffix(hostport, ":443") == n.origin.Host {
		return true
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil { // the default port is left out
		host, port = strings.Trim(hostport, "[]"), map[string]string{"http": "80", "https": "443"}[n.scheme]
	}
	if port != n.port {
		return false
	}
	if n.leaf != nil && n.leaf.VerifyHostname(host) == nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback() || host == n.host && host != ""
}

// allowsOrigin reports whether a request comes from a page of this server.
func (n *names) allowsOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if n.origin != nil && strings.TrimSuffix(strings.ToLower(u.Host), ":443") == n.origin.Host {
		return u.Scheme == "https"
	}
	return u.Scheme == n.scheme && n.allows(u.Host)
}
