package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Projects are the projects of the user on this machine, as their daemons and the shell see them.
type Projects interface {
	List(ctx context.Context) ([]protocol.Project, error)
	// Keep makes what the user allowed in a project count again; "": in the daemon's own.
	Keep(root string) (protocol.KeptProject, error)
	Move(ctx context.Context, from, to string) error
	// Forget returns the directory of worktrees that stay, or "".
	Forget(ctx context.Context, root string) (kept string, err error)
}

// registerProjects registers the methods of the noun project.
func registerProjects(reg *server.Registry, d Domain) {
	p := projects{d}
	const ends = " An idle daemon of that project is ended first. Refused while it works or has clients, and for the project of the " +
		"daemon that is asked (`bad_state`). Another value of data.kind: `project_not_found`."
	handle(reg, d, nativeFamily, "project.list", p.list, server.LongRunning(),
		server.Doc("Lists the projects with sessions on this machine, the last used first."))
	handle(reg, d, nativeFamily, "project.directories", directories,
		server.Doc("Lists the working directories of the sessions of the daemon's project, the last used first."))
	handle(reg, d, nativeFamily, "project.keep", p.keep, server.LongRunning(),
		server.Doc("Restores the rules, trust and answers from before the project's directory was deleted and created "+
			"again (replaced of project.list). Its sessions are kept in any case. data.kind is `project_not_found` if the project has no sessions."))
	handle(reg, d, nativeFamily, "project.move", p.move, server.LongRunning(),
		server.Doc("Gives the sessions of a project to another directory, for example after a move to another disk. "+
			"Refused if that directory has sessions (`bad_state`)."+ends))
	handle(reg, d, nativeFamily, "project.forget", p.forget, server.LongRunning(),
		server.Doc("Deletes all sessions, rules and logs of a project, and the git worktrees of its sessions. This cannot be undone. "+
			"The files of the project are left alone. If a worktree has work that is not landed, "+
			"nothing is deleted (`would_lose_work`, with data.losses as for session.discard)."+ends))
}

type projects struct{ Domain }

func (p projects) list(ctx context.Context, _ *hub.Hub, _ none) (protocol.ProjectList, error) {
	if p.Projects == nil {
		return protocol.ProjectList{}, domain.ErrEnding
	}
	list, err := p.Projects.List(ctx)
	for i := range list {
		list[i].LastUsed = list[i].LastUsed.UTC()
	}
	return protocol.ProjectList{Projects: protocol.List(list)}, err
}

const (
	directoriesByDefault = 20
	directoriesAtMost    = 1000
)

func directories(ctx context.Context, h *hub.Hub, p protocol.DirectoriesParams) (protocol.DirectoryList, error) {
	found, err := h.Query().RecentPaths(ctx, protocol.PageSize(p.Limit, directoriesByDefault, directoriesAtMost))
	r := protocol.DirectoryList{Directories: []protocol.Directory{}}
	for _, one := range found {
		r.Directories = append(r.Directories, protocol.Directory{Path: one.Path, LastUsed: one.LastUsed.UTC(), Sessions: one.Count})
	}
	return r, err
}

func (p projects) keep(ctx context.Context, _ *hub.Hub, params protocol.KeepProjectParams) (protocol.KeptProject, error) {
	if err := p.mayChange(ctx); err != nil {
		return protocol.KeptProject{}, err
	}
	return p.Projects.Keep(params.Root)
}

func (p projects) move(ctx context.Context, _ *hub.Hub, params protocol.MoveProjectParams) (protocol.MovedProject, error) {
	if err := p.mayChange(ctx); err != nil {
		return protocol.MovedProject{}, err
	}
	return protocol.MovedProject(params), p.Projects.Move(ctx, params.From, params.To)
}

func (p projects) forget(ctx context.Context, _ *hub.Hub, params protocol.ForgetProjectParams) (protocol.ForgottenProject, error) {
	if err := p.mayChange(ctx); err != nil {
		return protocol.ForgottenProject{}, err
	}
	kept, err := p.Projects.Forget(ctx, params.Root)
	return protocol.ForgottenProject{Root: params.Root, WorktreesKept: kept}, withLosses(err)
}

// mayChange refuses a client that does not trust the workspace.
func (p projects) mayChange(ctx context.Context) error {
	switch {
	case clientenv.IsRestricted(ctx):
		return domain.Errorf(domain.KindNotTrusted,
			"this editor does not trust the workspace (workspaceTrusted is false), so it changes no projects: trust it in the editor")
	case p.Projects == nil:
		return domain.ErrEnding
	}
	return nil
}
