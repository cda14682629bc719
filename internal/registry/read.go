package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	readTime     = time.Minute // for a registry
	downloadTime = 30 * time.Minute
	maxRedirects = 10
)

// A Source opens files: by HTTPS, or from this machine. Its methods may be called from any
// goroutine.
type Source struct {
	Client *http.Client // nil means a default one
	// Local allows archives on this machine, for a registry that is a local file.
	Local bool
}

// Read reads a registry from a file or an https URL that the user has named.
func Read(ctx context.Context, from string, client *http.Client) (text []byte, source Source, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	source = Source{Client: client}
	u, _ := url.Parse(from)
	if IsFile(from) {
		source.Local = true
		if from, err = filepath.Abs(from); err != nil {
			return nil, source, err
		}
		u = &url.URL{Scheme: "file", Path: filepath.ToSlash(from)}
	} else if u.Scheme == "file" {
		source.Local = true
	}
	r, err := source.open(ctx, u.String())
	if err != nil {
		return nil, source, err
	}
	defer r.Close()
	text, err = io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("the registry is longer than %d bytes", maxDocument)
	}
	return text, source, err
}

// IsFile reports whether a registry is named by a file name, rather than by a URL.
func IsFile(from string) bool {
	u, err := url.Parse(from)
	return err != nil || len(u.Scheme) < 2 // a single letter is a drive of Windows
}

// open opens a file or an https URL.
func (s Source) open(ctx context.Context, from string) (io.ReadCloser, error) {
	u, err := url.Parse(from)
	if err != nil {
		return nil, fmt.Errorf("%q is no URL", short(from))
	}
	switch {
	case u.Scheme == "file" && s.Local:
		path := filepath.FromSlash(u.Path)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", path)
		}
		return os.Open(path)
	case u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is not taken: only https is", short(from))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: onlyHTTPS}
	if s.Client != nil {
		client.Transport = s.Client.Transport
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: the server says %q", u.Redacted(), response.Status)
	}
	return response.Body, nil
}

func onlyHTTPS(r *http.Request, via []*http.Request) error {
	switch {
	case r.URL.Scheme != "https":
		return errors.New("it leads away from https")
	case len(via) >= maxRedirects:
		return errors.New("it leads from one place to the next, without an end")
	}
	return nil
}
