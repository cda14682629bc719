package threadsettings

import (
	"cmp"
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// agentAfter returns the agent of a session's conversation after a change. It checks that the
// caller may use that agent.
func (ts *Settings) agentAfter(ctx context.Context, s domain.Session, c Change) (string, error) {
	if !c.isForAnother(s.Thread) {
		return s.Thread.Agent, nil
	}
	agent, err := ts.opts.Agents.AgentFor(clientenv.IsRestricted(ctx), *c.Agent)
	return agent.Name, err
}

// giveTo changes the agent of a thread, from the next prompt on. The new agent starts its own
// session and gets the transcript. The previous agent's settings and permissions do not carry over,
// and its open questions are closed. giveTo adds these effects to changed.
func (ts *Settings) giveTo(t store.Tx, thread *domain.Thread, agent string, changed *domain.SettingsChanged) error {
	runs, err := t.UnfinishedRuns(ts.ctx, thread.ID)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.State != domain.Draft {
			return domain.Errorf(domain.KindBadState, "%s is %s: its conversation can get another agent when it has ended", domain.TaskName(run.Task), run.State)
		}
		run.Agent, run.Mode, run.AgentMode = agent, askingMode(run.Mode), ""
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	if err := ts.opts.Questions.CloseStale(t, thread.ID); err != nil {
		return err
	}
	thread.Agent, thread.NativeSession = agent, ""
	thread.Model, thread.Settings.Options = "", nil
	changed.Agent = &agent
	if mode := askingMode(thread.Mode); mode != thread.Mode {
		thread.Mode = mode
		changed.Mode = cmp.Or(changed.Mode, &mode)
	}
	no := false
	if thread.Settings.SkipPermissions {
		thread.Settings.SkipPermissions, thread.Settings.SkipPermissionsUntil = false, nil
		changed.SkipPermissions = cmp.Or(changed.SkipPermissions, &no)
	}
	if thread.Settings.AutoAcceptEdits {
		thread.Settings.AutoAcceptEdits = false
		changed.AutoAcceptEdits = cmp.Or(changed.AutoAcceptEdits, &no)
	}
	return ts.setModes(t, thread, thread.Mode)
}

// askingMode returns plan for plan, else default, so that no permission carries over.
func askingMode(mode string) string {
	if mode == catalog.ModePlan {
		return mode
	}
	return catalog.ModeDefault
}
