// Package database sees to the file that a project's database is: whose it is,
// what becomes of one that is somebody else's, a copy or moved, and what of its
// history is taken over. It is for whoever has the project's lock; [Look], [Check]
// and [Read] change nothing.
package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/health"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// ShowAside is what to do about a database that was set aside.
const ShowAside = "`duet-rpc trust --database` shows what it holds, and takes over its history if you want that"

// A place is where the project's database is, for whoever has the lock.
type place struct {
	origin.Place
	project project.Project
	log     *slog.Logger
}

// A Notice tells what was found in the database's place.
type Notice struct {
	Text  string
	Aside string // the directory with what is not used; "" if nobody needs to do anything about it
}

// What [Prepare] has found, or made.
type Prepared struct {
	ID      string   // of the database
	Notices []Notice // to be told to users
	// Unchanged gives an error when the database is not that file any more.
	Unchanged func() error
}

// Prepare sees to it that the project has a database that this user made here,
// before anything of it has an effect. What else there is is set aside; notices
// tell where, and what to do, also where there is an error.
func Prepare(ctx context.Context, p project.Project, log *slog.Logger) (done Prepared, err error) {
	key, err := origin.LoadKey(os.Getenv)
	if err != nil {
		return done, err
	}
	d := place{origin.At(p.Database(), key), p, log}
	found, err := lookAt(ctx, d.Place, p)
	if err != nil {
		return done, err
	}
	if len(found.Strange) > 0 {
		dir, err := d.SetStrangeAside(time.Now(), found.Strange)
		if err != nil {
			return done, err
		}
		done.Notices = append(done.Notices, Notice{Text: d.note("beside the project's database lay what would change it, and what duet-rpc has not put there; it was moved to %s", dir)})
	}
	id, notice, err := d.take(ctx, found)
	if err != nil {
		return done, err
	}
	if notice.Text != "" {
		done.Notices = append(done.Notices, notice)
	}
	err = d.Seal(id, found)
	if errors.Is(err, syscall.ENOSPC) && health.FreeReserve(p.Database()) == nil {
		err = d.Seal(id, found)
	}
	if err != nil {
		return done, err
	}
	done.ID = id
	done.Unchanged, err = d.Sealed()
	return done, err
}

// take makes what was found the project's database, or puts a new one into its
// place.
func (d place) take(ctx context.Context, found origin.Finding) (id string, notice Notice, err error) {
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

// note logs what clients are told, too.
func (d place) note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	d.log.Error(text) // so that it is seen beside a prompt
	return d.project.ShortenPaths(text)
}

func (d place) unfinished() string { return d.project.Database() + ".new" }

// begin makes a new database with what fill adds, and puts it into place. before
// is called when it is made, and may move away what is there. Both may be nil.
func (d place) begin(ctx context.Context, fill func(*sqlite.Store) error, before func() error) (id string, err error) {
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
func (d place) replaceForeign(ctx context.Context) (id string, notice Notice, err error) {
	var dir string
	id, err = d.begin(ctx, nil, func() (err error) {
		dir, err = d.SetAside(time.Now())
		return err
	})
	if err != nil {
		return "", notice, err
	}
	text := d.note("the project's database was not made by you on this machine (or by an earlier duet-rpc, or with another DUET_DATABASE_KEY), so it is not used: it was moved to %s; %s", dir, ShowAside)
	return id, Notice{text, dir}, nil
}

// replaceCopy puts a new database with its history into the place of one that
// is a copy of another one of the user's.
func (d place) replaceCopy(ctx context.Context, found origin.Finding) (id string, notice Notice, err error) {
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
		return id, Notice{d.note("the project's database is a copy of another one, and its history cannot be taken over (%v); it was moved to %s", damaged, dir), dir}, nil
	}
	if done, err := d.Taken(filepath.Join(dir, filepath.Base(d.project.Database()))); err == nil {
		dir = filepath.Dir(done)
	}
	text := fmt.Sprintf("the project's database is a copy (the one that it was made of was at %s), so it gets a life of its own: its history was taken over (%s), and nothing of what waited or was allowed there; the copy was moved to %s, and may be removed",
		found.Was, taken.Summary(), dir)
	if found.Was == d.project.Database() {
		text += "; if its files are new ones each time, as on some network file systems, set " + origin.KeyVariable
	}
	d.log.Warn(text)
	return id, Notice{Text: d.project.ShortenPaths(text)}, nil
}

// move lets the conversations of a database that was moved go on in the
// project's new place.
func (d place) move(ctx context.Context, found origin.Finding) error {
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
