package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/registry"
)

// This file remembers what was added from a registry: where it came from, and
// what was written for it, so that just that can be brought up to date or removed.

// A Record is an agent that was added.
type Record struct {
	Name    string `json:"name"`    // in the configuration
	From    string `json:"from"`    // the registry: an absolute file name, or a URL
	ID      string `json:"id"`      // there
	Version string `json:"version"` // there, when it was added or brought up to date
	Via     string `json:"via"`     // as of [registry.Plan]

	SHA256      string   `json:"sha256,omitempty"`      // of the archive, where there is one
	Text        string   `json:"text"`                  // what was written into the configuration
	Directories []string `json:"directories,omitempty"` // where archives were unpacked, the last one in use
}

// AddedOf is the record of a plan that is carried out, for an agent of a name; text is
// what the configuration says then. was is the record of the same agent until now,
// or nothing.
func AddedOf(name, from string, p registry.Plan, text string, was Record) Record {
	r := Record{Name: name, From: from, ID: p.Entry.ID, Version: p.Entry.Version, Via: p.Via, SHA256: p.SHA256, Text: text}
	r.Directories = slices.DeleteFunc(slices.Clone(was.Directories), func(d string) bool { return d == p.Directory })
	if p.Directory != "" {
		r.Directories = append(r.Directories, p.Directory)
	}
	return r
}

// records are the records of a user, by the names of agents.
type records struct {
	directory string
	byName    map[string]Record
}

const (
	suffix    = ".json"
	maxRecord = 1 << 20 // bytes
)

// AddedRead reads the records that are kept in a directory, which need not be there.
func AddedRead(directory string) (*records, error) {
	r := &records{directory: directory, byName: make(map[string]Record)}
	files, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		name, is := strings.CutSuffix(f.Name(), suffix)
		if info, err := f.Info(); !is || err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, f.Name()))
		if err != nil {
			return nil, err
		}
		var one Record
		if err := json.Unmarshal(text, &one); err != nil || one.Name != name {
			return nil, fmt.Errorf("%s is not as it was written: remove it, and what it tells of yourself", filepath.Join(directory, f.Name()))
		}
		r.byName[name] = one
	}
	return r, nil
}

// Find is the record of the agent of a name.
func (r *records) Find(name string) (Record, bool) {
	one, found := r.byName[name]
	return one, found
}

// Names are those of the agents, sorted.
func (r *records) Names() []string {
	names := make([]string, 0, len(r.byName))
	for name := range r.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Put keeps a record, whole or not at all.
func (r *records) Put(one Record) error {
	text, err := json.MarshalIndent(one, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.directory, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(r.directory, ".record-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // in vain once it has its name
	_, err = temporary.Write(append(text, '\n'))
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), filepath.Join(r.directory, one.Name+suffix)); err != nil {
		return err
	}
	r.byName[one.Name] = one
	return nil
}

// Forget removes the record of the agent of a name.
func (r *records) Forget(name string) error {
	delete(r.byName, name)
	err := os.Remove(filepath.Join(r.directory, name+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Mine are those of an agent's directories that can be removed: no other agent has
// them, and they are where archives are unpacked, whatever the record says.
func (r *records) Mine(one Record, directories []string) []string {
	return slices.DeleteFunc(slices.Clone(directories), func(d string) bool {
		for name, other := range r.byName {
			if name != one.Name && slices.Contains(other.Directories, d) {
				return true
			}
		}
		below, err := filepath.Rel(r.directory, d)
		return err != nil || !filepath.IsLocal(below) || strings.Count(filepath.ToSlash(below), "/") != 1
	})
}

// RemoveDirectories removes directories as of [Records.Mine], and those above that
// are empty then.
func RemoveDirectories(directories []string) error {
	var failed error
	for _, d := range directories {
		failed = errors.Join(failed, os.RemoveAll(d))
		_ = os.Remove(filepath.Dir(d)) // unless another version is there
	}
	return failed
}
