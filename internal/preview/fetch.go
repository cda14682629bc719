package preview

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Response is the response for a browser.
type Response struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// Fetch reads an address: a file, the index.html of a directory, or that of the root for an unknown
// address without extension. A missing file is a response with status 404. A file of more than most
// bytes is refused. The error is a *domain.Error of KindNavigation for a refused address, or of
// KindPreviewLoad for an unreadable one.
func (p *Preview) Fetch(ctx context.Context, url, origin string, most int) (Response, error) {
	address, err := Parse(url, origin)
	if err != nil {
		return Response{}, err
	}
	s, done, err := p.open(ctx)
	if err != nil {
		return Response{}, err
	}
	defer done()
	name, redirect, err := s.find(address)
	switch {
	case err != nil:
		return Response{}, err
	case redirect != "":
		r := response(301, plain, nil)
		r.Headers["Location"] = redirect
		return r, nil
	case name == "":
		return response(404, plain, []byte("404: there is no such file in the preview\n")), nil
	}
	body, err := s.read(name, most)
	if err != nil {
		return Response{}, err
	}
	return response(200, contentType(name), body), nil
}

const plain = "text/plain; charset=utf-8"

func response(status int, contentType string, body []byte) Response {
	return Response{
		Status: status, Body: body,
		Headers: map[string]string{
			"Content-Type": contentType, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		},
	}
}

// open opens the configured directory. It limits concurrent readers, because each file may use
// megabytes.
func (p *Preview) open(ctx context.Context) (s *site, done func(), err error) {
	configured, err := p.opts.Configured(ctx)
	if err != nil {
		return nil, nil, loadFailed(err, "the configuration cannot be read: %v", err)
	}
	select {
	case p.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if s, err = open(p.opts.Root, configured); err != nil {
		<-p.reading
		return nil, nil, err
	}
	return s, func() { s.close(); <-p.reading }, nil
}

// find finds the file of an address: "" if none exists. A directory without a slash is redirected
// to one with it, so that relative links work.
func (s *site) find(a Address) (name, redirect string, err error) {
	if slices.ContainsFunc(strings.Split(a.Name, "/"), hidden) {
		return "", "", nil
	}
	index := path.Join(a.Name, indexName)
	switch s.look(a.Name) {
	case file:
		if !a.Directory {
			return a.Name, "", nil
		}
	case directory:
		if s.look(index) != file {
			break
		}
		if !a.Directory {
			a.Directory = true
			return "", a.String(), nil
		}
		return index, "", nil
	}
	if !a.Page || !s.fallback && a.Name != "." {
		return "", "", nil
	}
	if s.look(indexName) != file {
		return "", "", loadFailed(nil, "%s is not there; build the project", s.path(indexName))
	}
	return indexName, "", nil
}

// contentTypes maps extensions to types. The machine's own mime.types is not used, so that a page
// is the same everywhere.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".xhtml": "application/xhtml+xml",
	".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8",
	".csv": "text/csv; charset=utf-8", ".vtt": "text/vtt; charset=utf-8", ".xml": "text/xml; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".cjs":  "text/javascript; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json",
	".wasm": "application/wasm", ".pdf": "application/pdf",
	".svg": "image/svg+xml", ".png": "image/png", ".apng": "image/apng", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif", ".ico": "image/x-icon", ".bmp": "image/bmp",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf",
	".eot": "application/vnd.ms-fontobject",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".oga": "audio/ogg", ".m4a": "audio/mp4",
	".flac": "audio/flac", ".mp4": "video/mp4", ".webm": "video/webm", ".ogv": "video/ogg", ".mov": "video/quicktime",
	".zip": "application/zip", ".gz": "application/gzip",
}

func contentType(name string) string {
	if known := contentTypes[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	return "application/octet-stream"
}
