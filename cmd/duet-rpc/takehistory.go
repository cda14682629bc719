package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// How large a database may be, with its log, in bytes, and a conversation in it,
// in entries, that a hub takes over while others use it: they wait for as long
// as a conversation takes.
const (
	mostBesideHub    = 64 << 20
	longestBesideHub = 10_000
)

// takeHistory takes over the history of a database that was set aside into the
// hub that runs here.
func (d *domain) takeHistory(ctx context.Context, directory string) (taken history.Result, where string, err error) {
	h, err := d.Hub(ctx)
	if err != nil {
		return taken, "", err
	}
	p := d.claimed().project
	place := origin.At(p.Database(), origin.Key{})
	for _, path := range place.Aside() {
		if filepath.Base(filepath.Dir(path)) != directory {
			continue
		}
		if taken, err = takeBesideOthers(ctx, h, path); err != nil {
			return taken, "", err
		}
		if where, err = place.Taken(path); err != nil {
			d.log.Warn("a database whose history was taken over could not be renamed", "err", err)
		}
		d.forgetAside(filepath.Dir(path))
		return taken, where, nil
	}
	return taken, "", &hub.Error{
		Kind: hub.KindInvalid, Message: fmt.Sprintf("no database of this project was set aside as %q", directory),
		Param: "directory", Expected: "the name of a directory in .duet with a database that was set aside", Received: fmt.Sprintf("%q", directory),
	}
}

func takeBesideOthers(ctx context.Context, h *hub.Hub, path string) (history.Result, error) {
	size := int64(0)
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Lstat(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return history.Result{}, err
		}
		if err == nil {
			size += info.Size()
		}
	}
	if size > mostBesideHub {
		return history.Result{}, &hub.Error{
			Kind: hub.KindBadState, Message: fmt.Sprintf("the database has %d MB: over %d MB are not taken over while the hub runs", size>>20, mostBesideHub>>20),
		}
	}
	from, err := sqlite.OpenForeign(ctx, path)
	if err != nil {
		return history.Result{}, &hub.Error{Kind: hub.KindBadState, Message: "nothing of this database can be taken over; `duet-rpc trust --database --show` says why", Err: err}
	}
	defer from.Close()
	longest, err := from.LongestThread(ctx)
	if err != nil {
		return history.Result{}, err
	}
	if longest > longestBesideHub {
		return history.Result{}, &hub.Error{
			Kind: hub.KindBadState, Message: fmt.Sprintf("a conversation in the database has %d entries: over %d are not taken over while the hub runs", longest, longestBesideHub),
		}
	}
	return h.TakeHistory(ctx, from, "")
}

// takeByHub has the hub that runs take over the history; running says which
// that is.
func (f *foreignDatabase) takeByHub(ctx context.Context, s *settings, p project.Project, running error) (history.Result, error) {
	var taken struct {
		history.Result
		Database string
	}
	alone := fmt.Errorf("%w; end it, and take the history over then: close the editors of this project, run `duet-rpc daemon stop`, then `duet-rpc trust --database %s`",
		running, quotedName(f.Database))
	directory := filepath.Dir(f.Database)
	if filepath.Dir(directory) != p.StateDir {
		return taken.Result, alone // a hub takes only what is the project's
	}
	c, err := dialHub(ctx, s, p)
	if err != nil {
		return taken.Result, fmt.Errorf("%w (%w)", alone, err)
	}
	defer c.Close()
	err = c.Call(ctx, "daemon.takeHistory", map[string]string{"directory": filepath.Base(directory)}, &taken, client.WithTimeout(0))
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Code == jsonrpc2.CodeMethodNotFound:
		return taken.Result, alone // it is of an earlier version
	case err != nil:
		return taken.Result, fmt.Errorf("%w; %w", inItsWords(err), alone)
	}
	f.Now = taken.Database
	return taken.Result, nil
}
