package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// showAside is what to do about a database that was set aside.
const showAside = "`duet-rpc trust --database` shows what it holds, and takes over its history if you want that"

// A databasePlace is where the project's database is, for who has the lock.
type databasePlace struct {
	origin.Place
	project project.Project
	log     *slog.Logger
}

// A databaseNotice tells what was found in the database's place.
type databaseNotice struct {
	text  string
	aside string // the directory with what is not used; "" if nobody needs to do anything about it
}

// prepareDatabase sees to it that the project has a database that this user
// made here, before anything of it has an effect, and returns its id. What else
// there is is set aside; notices tell where, and what to do.
func prepareDatabase(ctx context.Context, p project.Project, log *slog.Logger) (id string, notices []databaseNotice, err error) {
	key, err := origin.LoadKey(os.Getenv)
	if err != nil {
		return "", nil, err
	}
	d := databasePlace{origin.At(p.Database(), key), p, log}
	found, err := lookAtDatabase(ctx, d.Place, p)
	if err != nil {
		return "", nil, err
	}
	if len(found.Strange) > 0 {
		dir, err := d.SetStrangeAside(time.Now(), found.Strange)
		if err != nil {
			return "", nil, err
		}
		notices = append(notices, databaseNotice{text: d.note("beside the project's database lay what would change it, and what duet-rpc has not put there; it was moved to %s", dir)})
	}
	id, notice, err := d.take(ctx, found)
	if err != nil {
		return "", notices, err
	}
	if notice.text != "" {
		notices = append(notices, notice)
	}
	err = d.Seal(id, found)
	if errors.Is(err, syscall.ENOSPC) && hub.FreeReserve(p.Database()) == nil {
		err = d.Seal(id, found)
	}
	return id, notices, err
}

// take makes what was found the project's database, or puts a new one into its
// place.
func (d databasePlace) take(ctx context.Context, found origin.Finding) (id string, notice databaseNotice, err error) {
	switch found.Kind {
	case origin.Foreign:
		return d.replaceForeign(ctx)
	case origin.Copied:
		return d.replaceCopy(ctx, found)
	case origin.None:
		if id, finished := d.Finish(d.unfinished()); finished {
			return id, notice, nil
		}
		id, err = d.begin(ctx, nil, nil)
		return id, notice, err
	}
	err = sqlite.Inspect(ctx, d.project.Database(), found.ID)
	var broken *sqlite.OpenError
	if errors.As(err, &broken) && broken.Reason == "replaced" {
		return d.replaceForeign(ctx)
	}
	if err == nil && found.Kind == origin.Moved {
		err = d.move(ctx, found)
	}
	return found.ID, notice, err
}

// lookAtDatabase tells whose the database is, and changes nothing.
func lookAtDatabase(ctx context.Context, place origin.Place, p project.Project) (origin.Finding, error) {
	found, err := place.Look(func() (string, error) {
		from, err := sqlite.OpenForeign(ctx, p.Database())
		if err != nil {
			return "", err
		}
		defer from.Close()
		return from.ID(ctx)
	})
	var unusable *origin.UnusableError
	if errors.As(err, &unusable) {
		err = &sqlite.OpenError{Path: p.Database(), Reason: "unreadable", Err: err}
	}
	return found, err
}

// note logs what clients are told, too.
func (d databasePlace) note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	d.log.Error(text) // so that it is seen beside a prompt
	return toldPaths(text, d.project)
}

func (d databasePlace) unfinished() string { return d.project.Database() + ".new" }

// begin makes a new database with what fill adds, and puts it into place. before
// is called when it is made, and may move away what is there. Both may be nil.
func (d databasePlace) begin(ctx context.Context, fill func(*sqlite.Store) error, before func() error) (id string, err error) {
	made := d.unfinished()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(made + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("making a database: %w", err)
		}
	}
	id = origin.NewID()
	if err := sqlite.Create(ctx, made, id, fill); err != nil {
		return "", err
	}
	if before != nil {
		if err := before(); err != nil {
			return "", err
		}
	}
	return id, d.Install(made, id)
}

// replaceForeign puts a new database into the place of one that is somebody
// else's.
func (d databasePlace) replaceForeign(ctx context.Context) (id string, notice databaseNotice, err error) {
	var dir string
	id, err = d.begin(ctx, nil, func() (err error) {
		dir, err = d.SetAside(time.Now())
		return err
	})
	if err != nil {
		return "", notice, err
	}
	text := d.note("the project's database was not made by you on this machine (or by an earlier duet-rpc, or with another DUET_DATABASE_KEY), so it is not used: it was moved to %s; %s", dir, showAside)
	return id, databaseNotice{text, dir}, nil
}

// replaceCopy puts a new database with its history into the place of one that
// is a copy of another one of the user's.
func (d databasePlace) replaceCopy(ctx context.Context, found origin.Finding) (id string, notice databaseNotice, err error) {
	var dir string
	var taken history.Result
	var damaged error
	take := func(into *sqlite.Store) (err error) {
		taken, err = takeHistory(ctx, d.project, d.project.Database(), found.Was, into)
		var broken *sqlite.OpenError
		if errors.As(err, &broken) && broken.Reason != "newer" {
			damaged, err = err, nil
		}
		return err
	}
	id, err = d.begin(ctx, take, func() (err error) {
		dir, err = d.SetAside(time.Now())
		return err
	})
	switch {
	case err != nil:
		return "", notice, err
	case damaged != nil:
		return id, databaseNotice{d.note("the project's database is a copy of another one, and its history cannot be taken over (%v); it was moved to %s", damaged, dir), dir}, nil
	}
	if done, err := d.Taken(filepath.Join(dir, filepath.Base(d.project.Database()))); err == nil {
		dir = filepath.Dir(done)
	}
	text := fmt.Sprintf("the project's database is a copy (the one that it was made of was at %s), so it gets a life of its own: its history was taken over (%s), and nothing of what waited or was allowed there; the copy was moved to %s, and may be removed",
		found.Was, takenText(taken), dir)
	if found.Was == d.project.Database() {
		text += "; if its files are new ones each time, as on some network file systems, set " + origin.KeyVariable
	}
	d.log.Warn(text)
	return id, databaseNotice{text: toldPaths(text, d.project)}, nil
}

// takeHistory takes the history of a database over into another one. was is
// the path that it had in its own project, or "".
func takeHistory(ctx context.Context, p project.Project, database, was string, into *sqlite.Store) (history.Result, error) {
	from, err := sqlite.OpenForeign(ctx, database)
	if err != nil {
		return history.Result{}, err
	}
	defer from.Close()
	return history.TakeOver(ctx, from, into, history.Options{Root: p.Root, Was: rootOf(was, p)})
}

// rootOf is the root of the project whose database had a path, or "" where the
// state was not in the project.
func rootOf(database string, p project.Project) string {
	state := filepath.Dir(database)
	if database == "" || filepath.Dir(p.StateDir) != p.Root || filepath.Base(state) != filepath.Base(p.StateDir) {
		return ""
	}
	return filepath.Dir(state)
}

// move lets the conversations of a database that was moved go on in the
// project's new place.
func (d databasePlace) move(ctx context.Context, found origin.Finding) error {
	d.log.Info("the project was moved here; all goes on", "from", found.Was)
	was := rootOf(found.Was, d.project)
	if was == "" {
		return nil
	}
	if err := d.SealMoving(found); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, d.project.Database(), store.Options{})
	if err != nil {
		return err
	}
	err = s.Write(ctx, func(t store.Tx) error { return t.MoveDirectories(was, d.project.Root) })
	return errors.Join(err, s.Close())
}

// takenText says how much of a history was taken over.
func takenText(r history.Result) string {
	parts := []string{historyText(r.Conversations, r.Runs, r.Items, r.Changes)}
	for _, more := range []struct {
		n         int
		one, many string
	}{
		{r.Here, "conversation was here already", "conversations were here already"},
		{r.Waiting, "session that waited was left", "sessions that waited were left"},
		{r.Mended, "value was mended", "values were mended"},
		{r.LeftOut, "row that made no sense was left out", "rows that made no sense were left out"},
	} {
		if more.n > 0 {
			parts = append(parts, countIn(more.n, more.one, more.many))
		}
	}
	return strings.Join(parts, "; ")
}
