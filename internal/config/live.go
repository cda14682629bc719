package config

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/filewatch"
)

// Live is the current configuration: it checks its files on every call. So an edit, a new trust
// or its withdrawal needs no restart. Methods may be called from any goroutine; a call that has
// to read the files again takes as long as [Load].
type Live struct {
	load  func(restricted bool) (*Config, error)
	files []string // read files
	trust *Store
	file  string // the project's

	mu         sync.Mutex // guards the fields below
	all        view
	restricted view
	generation uint64
}

// A view is a configuration that was read, or the error of reading it.
type view struct {
	config *Config // the last valid one
	err    error   // of the last attempt
	stamps []stamp
	looked time.Time // at the files
	read   time.Time
}

// A stamp identifies a version of a file.
type stamp struct {
	info fs.FileInfo // nil if there is none
}

func (s stamp) is(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.ModTime().Equal(other.info.ModTime()) && s.info.Size() == other.info.Size() &&
		s.info.Mode() == other.info.Mode()
}

// minStampAge is the minimum age of a file's last change for its time to identify the version: file
// systems count time in ticks.
const minStampAge = 50 * time.Millisecond

// NewLive makes a Live over the files of s. load reads the configuration, for an unrestricted or
// a restricted client.
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

// refresh updates a view if needed. mu is held.
func (l *Live) refresh(v *view, restricted bool) {
	now := l.stamps()
	v.looked = time.Now()
	if v.stamps != nil && slices.EqualFunc(now, v.stamps, stamp.is) && !slices.ContainsFunc(now, func(s stamp) bool {
		return s.info != nil && v.read.Sub(s.info.ModTime()).Abs() < minStampAge
	}) {
		return
	}
	// A change during the read gets other stamps, so the next call sees it.
	v.stamps, v.read = now, time.Now()
	c, err := l.load(restricted)
	if v.err = err; err == nil {
		v.config = c
	} else if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Unread {
		v.stamps = nil // the next call tries again
	}
	l.generation++
}

// Current returns the current configuration, for an unrestricted client or for one that does not
// trust the workspace. The caller must not change it.
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
	l.refresh(v, restricted)
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

// Rules returns the rules of the current configuration. While it cannot be read, earlier deny
// rules stay, and nothing is allowed.
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

// budgetAge is the maximum age of a budget. Each tool call asks for it, thousands of times a second.
const budgetAge = 250 * time.Millisecond

// Budget returns the budget of the configuration, which is current or at most a quarter of a second
// old. While the configuration cannot be read, the previous budget applies.
func (l *Live) Budget() Budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all.config == nil || time.Since(l.all.looked) >= budgetAge {
		l.refresh(&l.all, false)
	}
	if l.all.config == nil {
		return Budget{}
	}
	return l.all.config.Budget
}

// Generation returns a number that changes when anything may have changed.
func (l *Live) Generation() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view(false)
	return l.generation
}

// Watch sends on changed, until stop is called, when Generation or Revoked may have changed. It
// closes the channel when the system can no longer watch, and returns nil if it never could; see
// [filewatch.Files].
func (l *Live) Watch() (changed <-chan struct{}, stop func()) {
	w, err := filewatch.Files(l.files...)
	if err != nil {
		return nil, func() {}
	}
	return w.C, func() { w.Close() }
}

// Revoked reports whether the user trusts no version of the project's file. It is false for a
// file that was changed after the user trusted it: the trusted version is still trusted, the
// current one is not.
func (l *Live) Revoked() bool {
	trusted, err := l.trust.Remembers(l.file)
	return err == nil && !trusted
}
