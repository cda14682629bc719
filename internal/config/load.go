package config

import (
	"os"

	"github.com/duet-rpc/duet-rpc/internal/trust"
)

// Sources are the places that a configuration is read from.
type Sources struct {
	Project   string              // the project's file, which need not exist; empty for none
	User      string              // the user's file, see [UserFile]; empty for none
	Getenv    func(string) string // nil means os.Getenv
	Overrides Overrides
	Trust     *trust.Store // nil means that of [DefaultTrustStore]
	// Restricted lets what the project's file asks for wait, whatever the user
	// has trusted.
	Restricted bool
}

// Overrides are the values of flags as they were written, empty for those that
// were not given.
type Overrides struct {
	Agent, MaxRuns, QueueCap, RunTimeout, IdleAgents, DaemonIdle string
}

// Load reads the configuration. What is wrong is an [*Error], which names all
// of it; the configuration is nil then.
func Load(s Sources) (*Config, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	user := readUser(s.User, s.Getenv)
	project := readProject(s.Project, user, s.Getenv)
	environment := environmentLayer(s.Getenv)
	flags := flagLayer(s.Overrides)

	requirePrograms(user, project)
	var failed Error
	for _, l := range []*layer{project, user, environment, flags} {
		failed.Problems = append(failed.Problems, l.Problems...)
	}
	if len(failed.Problems) > 0 {
		return nil, failed.cut()
	}

	trusted, err := trustedLayer(s, project, user.bounding())
	if err != nil {
		return nil, err
	}
	b := newBuilder(s.Getenv, s.Project)
	b.apply(user, true)
	b.apply(project, trusted)
	b.apply(environment, true)
	b.apply(flags, true)
	if project.foreign != nil {
		b.c.Notes = append(b.c.Notes, project.foreign.Error())
	}
	return b.finish(), nil
}

// trustedLayer tells whether the user trusts what the project's file asks for.
// The store is asked only if it asks for something.
func trustedLayer(s Sources, project *layer, below bounding) (bool, error) {
	if len(project.needTrust(below, false)) == 0 {
		return true, nil
	}
	if s.Restricted {
		return false, nil
	}
	store := s.Trust
	if store == nil {
		var err error
		if store, err = trust.Default(s.Getenv); err != nil {
			return false, err
		}
	}
	return store.Trusts(project.Path, project.Content)
}
