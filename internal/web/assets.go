package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"hash/fnv"
	"net/http"
	"path"
	"strings"
	"sync"
)

// assets are the page's files. `npm run web` in vscode/ makes them, and a test compares them.
//
//go:embed assets
var assets embed.FS

// serveAsset serves a file of the page. They are the same for everyone, and have no secret.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	sum := fnv.New64a()
	sum.Write(text) // never fails
	header := w.Header()
	header.Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%x", sum.Sum64())))
	header.Set("Cache-Control", "no-cache") // ask again: a newer duet-rpc has a newer page
	header.Set("Content-Type", contentType(name))
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && path.Ext(name) != ".png" {
		header.Set("Content-Encoding", "gzip")
		text = compressed(name, text)
	}
	header.Add("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == header.Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(text) // the browser may have gone
}

// packed are the compressed files of the page that were asked for, by name: there are few, and they do not change.
var packed sync.Map

func compressed(name string, text []byte) []byte {
	if known, ok := packed.Load(name); ok {
		return known.([]byte)
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // a buffer takes all
	_ = w.Close()
	packed.Store(name, b.Bytes())
	return b.Bytes()
}

// contentType does not depend on the tables of this machine.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".png":
		return "image/png"
	case ".webmanifest":
		return "application/manifest+json"
	}
	return "application/octet-stream"
}
