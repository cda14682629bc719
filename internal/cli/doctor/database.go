package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// checkDatabase looks whether the database can be used, without changing it.
// Nothing is read of one that is not the user's own.
func checkDatabase(p project.Project) Finding {
	f := Finding{Check: "database"}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	found, err := database.Look(ctx, p)
	if errors.As(err, new(*database.KeyError)) {
		f.State, f.Found, f.Todo = Wrong, err.Error(), "sessions are not available until this is fixed"
		return f
	}
	if err != nil {
		f.State, f.Found, f.Todo = Wrong, err.Error(), "sessions are not available until this is fixed; the file was not touched"
		return f
	}
	if len(found.Strange) > 0 {
		f.State, f.Found = Wrong, "duet-rpc did not put this there, and it would change the database: "+strings.Join(found.Strange, ", ")
		f.Todo = "find out where it comes from; it is moved away, unused, the next time that sessions are needed"
		return f
	}
	switch found.Kind {
	case origin.None:
		f.State, f.Found = OK, "none yet; it is made with the first session"
		return f
	case origin.Foreign:
		f.State, f.Found = Wrong, p.Database()+" was not made by you on this machine (or by an earlier duet-rpc, or with another DUET_DATABASE_KEY), so it is not used"
		f.Todo = "it is moved away the next time that sessions are needed; " + database.ShowAside
		return f
	case origin.Copied:
		f.State, f.Found = Note, fmt.Sprintf("a copy of the database that was at %s", found.Was)
		f.Todo = "the next time that sessions are needed it becomes a database of its own, with the same history"
		return f
	}
	return checkOwnDatabase(ctx, p)
}

func checkOwnDatabase(ctx context.Context, p project.Project) Finding {
	f := Finding{Check: "database", State: OK}
	tellsTodo := false
	info, err := os.Stat(p.Database())
	if err == nil {
		tellsTodo, err = database.Check(ctx, p)
	}
	switch {
	case tellsTodo:
		f.State, f.Found = Wrong, err.Error()
		f.Todo = "sessions are not available until this is fixed; the file was not touched"
	case err != nil:
		f.State, f.Found, f.Todo = Wrong, err.Error(), "look at the permissions of the file and its directory"
	default:
		f.Found = fmt.Sprintf("%s, %.1f MB", p.Database(), float64(info.Size())/1e6)
	}
	return f
}

// checkAside tells of databases that were set aside.
func checkAside(p project.Project) []Finding {
	aside := database.Aside(p)
	if len(aside) == 0 {
		return nil
	}
	found := aside[0] + " is not used: it was not made by you on this machine"
	switch more := len(aside) - 1; more {
	case 0:
	case 1:
		found += "; nor is an older one beside it"
	default:
		found += fmt.Sprintf("; nor are %d older ones beside it", more)
	}
	return []Finding{{Check: "set aside", State: Note, Found: found, Todo: database.ShowAside + "; remove its directory if you do not"}}
}
