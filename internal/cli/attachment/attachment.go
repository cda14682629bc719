// Package attachment makes files content that goes with a prompt: those that were
// named, and those of the project that the prompt mentions as @path.
package attachment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	// most is how many bytes can go with a prompt: in base64 they have to fit into
	// a message to the hub.
	most = 7 << 20
	// mostMentioned is how long a file may be to go with a prompt that mentions it;
	// of a longer one the agent is told where it is.
	mostMentioned = 256 << 10
)

// A Block is content as the Agent Client Protocol spells it.
type Block struct {
	Type     string    `json:"type"`
	MIMEType string    `json:"mimeType,omitempty"`
	Data     []byte    `json:"data,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// A Resource is a file's contents.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

// Files are files by their paths, which the user has named: anywhere.
func Files(paths []string) ([]Block, error) {
	var blocks []Block
	left := int64(most)
	for _, path := range paths {
		if path == "-" {
			return nil, errors.New("standard input cannot be attached: write it to a file and attach that, or pipe it into the prompt")
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		data, err := read(full, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		blocks = append(blocks, block(full, data))
	}
	return blocks, nil
}

// Mentioned are the files in root that text mentions as @path, relative to dir or
// to root. outside are those that are elsewhere: what a text mentions is not what
// the user has named.
func Mentioned(text, dir, root string) (blocks []Block, outside []string) {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	seen := make(map[string]bool)
	left := int64(most)
	for word := range strings.FieldsSeq(text) {
		path, ok := strings.CutPrefix(word, "@")
		if !ok {
			continue
		}
		name, full := find(path, dir, root)
		switch {
		case full == "" || seen[full]:
			continue
		case !within(root, full):
			outside = append(outside, name)
		default:
			if b, n := mention(full, left); b != nil {
				blocks = append(blocks, *b)
				left -= n
			}
		}
		seen[full] = true
	}
	return blocks, outside
}

// find is the file that a word names, perhaps with punctuation behind it; "" if it
// names none.
func find(word, dir, root string) (name, full string) {
	for _, path := range []string{word, strings.TrimRight(word, ".,;:!?)]}'\"")} {
		for _, base := range []string{dir, root} {
			if path == "" {
				continue
			}
			full = path
			if !filepath.IsAbs(full) {
				full = filepath.Join(base, path)
			}
			resolved, err := filepath.EvalSymlinks(full)
			if err != nil {
				continue
			}
			if info, err := os.Stat(resolved); err == nil && info.Mode().IsRegular() {
				return path, resolved
			}
		}
	}
	return "", ""
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// mention is a file that a text mentions, and how many bytes of it go along: nil
// if it cannot be read.
func mention(path string, left int64) (*Block, int64) {
	data, err := read(path, left)
	if err == nil {
		b := block(path, data)
		if b.Type != "resource" || len(data) <= mostMentioned && len(b.Resource.Blob) == 0 {
			return &b, int64(len(data))
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0
	}
	return &Block{Type: "resource_link", URI: uri(path), Name: filepath.Base(path), MIMEType: byName(path), Size: info.Size()}, 0
}

// read reads a regular file. It opens nothing else: that of a pipe would wait for a
// writer.
func read(path string, left int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(path, info)
	}
	f, err := os.Open(path)
	var why *fs.PathError
	if errors.As(err, &why) {
		return nil, fmt.Errorf("%s cannot be attached: %w", path, why.Err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, irregular(path, info)
	case info.Size() > left:
		return nil, fmt.Errorf("%s has %d bytes: what goes with a prompt has at most %d in all", path, info.Size(), most)
	}
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	if err == nil && int64(len(data)) > left {
		err = errors.New(path + " grows while it is read")
	}
	return data, err
}

// irregular is the error of a path that is no regular file.
func irregular(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory and cannot be attached: attach files, or name it in the prompt", path)
	}
	return fmt.Errorf("%s is a pipe or a device and cannot be attached: write what it gives to a file and attach that", path)
}

// block is a file as the kind of content that it is.
func block(path string, data []byte) Block {
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		text := string(data)
		return Block{Type: "resource", Resource: &Resource{URI: uri(path), MIMEType: cmp.Or(byName(path), "text/plain"), Text: &text}}
	}
	kind := http.DetectContentType(data)
	if kind == "application/octet-stream" {
		kind = cmp.Or(byName(path), kind)
	}
	for _, t := range []string{"image", "audio"} {
		if strings.HasPrefix(kind, t+"/") {
			return Block{Type: t, MIMEType: kind, Data: data, URI: uri(path), Name: filepath.Base(path)}
		}
	}
	return Block{Type: "resource", Resource: &Resource{URI: uri(path), MIMEType: kind, Blob: data}}
}

// byName is the type that a file's name stands for, without parameters.
func byName(path string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";")
	return kind
}

func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
