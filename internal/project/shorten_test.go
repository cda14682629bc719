package project_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

func TestPathsBeginAtTheProjectOrHome(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	p := project.Project{Root: "/home/u/p", StateDir: "/home/u/p/.duet"}
	for text, want := range map[string]string{
		"/home/u/p/.duet/lock is a directory": ".duet/lock is a directory",
		"open /home/u/p/.duet/duet.db: no":    "open .duet/duet.db: no",
		"(/home/u/p): is full":                "(the project's directory): is full",
		"/home/u/p2/x and /home/u/p-":         "~/p2/x and ~/p-",
		"/srv/home/u/p/x, /home/u2":           "/srv/home/u/p/x, /home/u2",
		"mkdir /home/u: no":                   "mkdir ~ (your home directory): no",
		".duet.toml:1:3: what is this":        ".duet.toml:1:3: what is this",
	} {
		assert.Equal(t, want, p.ShortenPaths(text))
	}
	assert.Equal(t, "/x/y", project.Project{Root: "/"}.ShortenPaths("/x/y"))
}
