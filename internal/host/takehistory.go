package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/origin"
)

// TakeOver takes the history of a database over into the project's, where no
// hub runs. If one does the error is a *project.HeldError.
func TakeOver(ctx context.Context, s *hubprocess.Settings, path string, log *logging.Log) (database.Takeover, error) {
	c := claimProject(s)
	if err := c.why(); err != nil {
		return database.Takeover{}, err
	}
	defer c.release(nil)
	p, _ := c.of()
	taken, err := database.TakeOver(ctx, p, path, log.Logger)
	var unusable *database.UnavailableError
	if errors.As(err, &unusable) {
		err = unavailable(p, unusable.Err)
	}
	return taken, err
}

// takeHistory takes over the history of a database that was set aside into the
// hub that runs here.
func (h *host) takeHistory(ctx context.Context, directory string) (taken history.Result, where string, err error) {
	into, err := h.Hub(ctx)
	if err != nil {
		return taken, "", err
	}
	p, _ := h.claim.of()
	for _, path := range database.Aside(p) {
		if filepath.Base(filepath.Dir(path)) != directory {
			continue
		}
		from, err := database.OpenAside(ctx, path)
		var refused *database.RefusedError
		if errors.As(err, &refused) {
			err = &domain.Error{Kind: domain.KindBadState, Message: refused.Text, Err: refused.Err}
		}
		if err != nil {
			return taken, "", err
		}
		taken, err = into.Adoption().TakeHistory(ctx, from, "")
		from.Close()
		if err != nil {
			return taken, "", err
		}
		if where, err = origin.At(p.Database(), origin.Key{}).Taken(path); err != nil {
			h.log.Warn("a database whose history was taken over could not be renamed", "err", err)
		}
		h.notices.forget(filepath.Dir(path))
		return taken, where, nil
	}
	return taken, "", &domain.Error{
		Kind: domain.KindInvalid, Message: fmt.Sprintf("no database of this project was set aside as %q", directory),
		Param: "directory", Expected: "the name of a directory in .duet with a database that was set aside", Received: fmt.Sprintf("%q", directory),
	}
}
