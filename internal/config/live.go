package config

import (
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/filewatch"
)

// Live is the configuration as its files say it now: it looks at them whenever
// it is asked, so that whoever edits one, or trusts it, or takes that back, need
// not restart anything. Methods may be called from any goroutine; one that has to
// read the files again takes as long as [Load].
type Live struct {
	load  func(restricted bool) (*Config, error)
	files []string // that it is read from
	trust *Store
	file  string // the project's

	mu         sync.Mutex // guards the fields below
	all        view
	restricted view
	generation uint64
}

// A view is a configuration that was read, or why it could not be.
type view struct {
	config *Config // the last that could be read
	err    error   // of the last try
	stamps []stamp
	read   time.Time
}

// A stamp is by what a file that was changed is known.
type stamp struct {
	info fs.FileInfo // nil where there is none
}

func (s stamp) is(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.ModTime().Equal(other.info.ModTime()) && s.info.Size() == other.info.Size() &&
		s.info.Mode() == other.info.Mode()
}

// fresh is how old a file's last change must be to be told from another one:
// file systems count time in ticks.
const fresh = 50 * time.Millisecond

// NewLive makes a Live that is read by load, as it is for everybody or for who
// does not trust the workspace, from the files of s.
func NewLive(s Sources, load func(restricted bool) (*Config, error)) (*Live, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Trust == nil {
		var err error
		if s.Trust, err = DefaultTrust(s.Getenv); err != nil {
			return nil, err
		}
	}
	return &Live{load: load, files: append([]string{s.Project, s.User}, s.Trust.Files(s.Project)...), trust: s.Trust, file: s.Project}, nil
}

func (l *Live) stamps() []stamp {
	list := make([]stamp, len(l.files))
	for i, file := range l.files {
		if info, err := os.Stat(file); err == nil {
			list[i].info = info
		}
	}
	return list
}

// look brings a view up to date, where that is needed. mu is held.
func (l *Live) look(v *view, restricted bool) {
	now := l.stamps()
	if v.stamps != nil && slices.EqualFunc(now, v.stamps, stamp.is) && !slices.ContainsFunc(now, func(s stamp) bool {
		return s.info != nil && v.read.Sub(s.info.ModTime()).Abs() < fresh
	}) {
		return
	}
	// What is changed while it is read has other stamps the next time.
	v.stamps, v.read = now, time.Now()
	c, err := l.load(restricted)
	if v.err = err; err == nil {
		v.config = c
	}
	l.generation++
}

// Current is the configuration as it is now, for everybody or for who does not
// trust the workspace. It is not to be changed.
func (l *Live) Current(restricted bool) (*Config, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.view(restricted)
	return v.config, v.err
}

func (l *Live) view(restricted bool) *view {
	v := &l.all
	if restricted {
		v = &l.restricted
	}
	l.look(v, restricted)
	return v
}

// Resolve is [Config.Resolve] of the current configuration.
func (l *Live) Resolve(name string) (Agent, error) {
	c, err := l.Current(false)
	if err != nil {
		return Agent{}, err
	}
	return c.Resolve(name)
}

// Rules are those of the current configuration. While it cannot be read, what
// was denied before stays denied, and nothing is allowed.
func (l *Live) Rules() []Rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.view(false)
	switch {
	case v.err == nil:
		return v.config.Rules
	case v.config == nil:
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.config.Rules), func(r Rule) bool { return r.Effect != EffectDeny })
}

// Budget is that of the current configuration. While it cannot be read, what it was
// counts.
func (l *Live) Budget() Budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.view(false); v.config != nil {
		return v.config.Budget
	}
	return Budget{}
}

// Keys are those of the current configuration; none while it cannot be read.
func (l *Live) Keys() map[string]Key {
	c, err := l.Current(false)
	if err != nil {
		return nil
	}
	return c.Keys
}

// Generation is a number that is another one when anything may have changed.
func (l *Live) Generation() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view(false)
	return l.generation
}

// Watch tells on changed, until stop is called, when Generation or Revoked may have
// become another. It is closed when the system cannot tell any more, and nil where it
// never could; see [filewatch.Files].
func (l *Live) Watch() (changed <-chan struct{}, stop func()) {
	w, err := filewatch.Files(l.files...)
	if err != nil {
		return nil, func() {}
	}
	return w.C, func() { w.Close() }
}

// Revoked reports whether the user trusts no content of the project's file. A
// file that was changed since it was trusted is not among these: what it was is
// still trusted, what it is now is not.
func (l *Live) Revoked() bool {
	trusted, err := l.trust.Remembers(l.file)
	return err == nil && !trusted
}
