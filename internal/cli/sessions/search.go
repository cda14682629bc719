package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A hit is what a search has found.
type hit struct {
	SessionID string `json:"session_id"`
	Title     string `json:"title"`
	EventType string `json:"event_type"`
	Role      string `json:"role"`
	ToolName  string `json:"tool_name"`
	Snippet   string `json:"snippet"`
	CreatedAt string `json:"created_at"`
}

// by is who has said it, or what has.
func (h hit) by() string { return cmp.Or(h.ToolName, h.Role, h.EventType) }

// NewSearch makes the command search.
func NewSearch(o Options) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "search WORDS...", Args: o.AtLeast("WORDS"),
		Short:   "Find what was said or done in any conversation",
		Long:    "Find what was said or done in any conversation of the project: all words have to be\nthere, the last may be the beginning of one. The best come first.\n" + o.Help,
		Example: "  duet-rpc search parser tests",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				r, raw, err := wire.Call[struct{ Hits []hit }](ctx, c, "searchConversations", map[string]any{"query": joined(args), "limit": limit})
				if err != nil {
					return err
				}
				if o.JSON() {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if len(r.Hits) == 0 {
					return fmt.Errorf("nothing was found for %q: all words have to be there, in one message; fewer words find more", joined(args))
				}
				return printHits(ctx, cmd, c, r.Hits)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most, up to 200")
	return cmd
}

// beforeMatch is how much of what was found is shown before the first word that was
// searched for, in characters: a narrow terminal has room for that word.
const beforeMatch = 16

// aroundMatch is what was found from a little before the first word that was searched
// for.
func aroundMatch(snippet string) string {
	at := strings.Index(snippet, "«")
	if at <= 0 || utf8.RuneCountInString(snippet[:at]) <= beforeMatch {
		return snippet
	}
	words := []rune(snippet[:at])
	before := string(words[len(words)-beforeMatch:])
	if _, rest, cut := strings.Cut(before, " "); cut && rest != "" {
		before = rest
	}
	return "…" + before + snippet[at:]
}

func printHits(ctx context.Context, cmd *cobra.Command, c *client.Client, hits []hit) error {
	tasks := make(map[string]string) // of sessions
	t := term.NewTable(cmd.OutOrStdout(), "TASK", "AGE", "BY", "FOUND")
	t.Spare("BY", "AGE")
	for _, h := range hits {
		if tasks[h.SessionID] == "" {
			s, _, err := wire.SessionState(ctx, c, h.SessionID)
			if err != nil {
				return err
			}
			tasks[h.SessionID] = s.TaskID
		}
		t.Row(tasks[h.SessionID], term.Age(h.CreatedAt), h.by(), aroundMatch(h.Snippet))
	}
	return t.Flush()
}
