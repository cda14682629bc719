//go:build unix

package worktree_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A side is a worktree in the model: the files are single lines, so files merge as a whole.
type side struct {
	worktree.Worktree
	base     map[string]string // at the start
	landings []landing
}

type landing struct {
	theirs map[string]string // the worktree's files
	result map[string]string // the user's files after a patch, or nil
}

// from returns the files that the worktree and the user have in common, and the files of each commit
// that the worktree has made since.
func (s side) from(users map[string]string) (common map[string]string, commits []map[string]string) {
	for i, last := range slices.Backward(s.landings) {
		counts := true
		for _, name := range names {
			if last.result != nil && last.theirs[name] != s.base[name] && last.result[name] != users[name] {
				counts = false
			}
		}
		if counts {
			return last.theirs, commits
		}
		commits = slices.Insert(commits, 0, s.landings[i].theirs)
	}
	return s.base, commits
}

// merge merges each file as a whole. conflict is a file that differs in all three, or "".
func merge(base, ours, theirs map[string]string) (merged map[string]string, conflict string) {
	merged = maps.Clone(ours)
	for _, name := range names {
		switch {
		case theirs[name] == base[name] || theirs[name] == ours[name]:
			continue
		case ours[name] != base[name]:
			conflict = name
		case theirs[name] == "":
			delete(merged, name)
		default:
			merged[name] = theirs[name]
		}
	}
	return merged, conflict
}

// replays reports whether each commit of a worktree can be made again on the user's files.
func replays(base, ours map[string]string, commits []map[string]string) bool {
	for _, commit := range commits {
		picked, conflict := merge(base, ours, commit)
		if conflict != "" {
			return false
		}
		base, ours = commit, picked
	}
	return true
}

var names = []string{"a", "b", "c/d", "c/e", "f"}

// Two worktrees and the user change random files. A landing has the result of a plain merge of each
// file, or it fails and changes nothing. A rebase fails, too, if one of its commits conflicts and the
// merge of all does not. The seeds are those that failed once; `make soak` tries new ones.
func TestRandomLandings(t *testing.T) {
	t.Parallel()
	seeds := []uint64{11544894463796143488, 16106682688266096215, 16907126700490354358}
	if testkit.Soak {
		for range 30 {
			seeds = append(seeds, rand.Uint64())
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			w := newRepository(t, map[string]string{"a": "a0\n", "b": "b0\n", "c/d": "d0\n", "keep": "k\n"})
			committed := testkit.ReadFiles(t, w.dir)
			var sides []*side
			for range 2 {
				sides = append(sides, &side{Worktree: w.create("x", nil), base: committed})
			}
			change := func(dir string) {
				name := names[random.IntN(len(names))]
				text := fmt.Sprintf("%d\n", random.Uint64())
				switch random.IntN(6) {
				case 0:
					text = ""
				case 1:
					text = "x " + text
				case 2:
					text = "same in " + name + "\n" // in no other file, since the model knows no renames
				}
				testkit.WriteFiles(t, dir, map[string]string{name: text})
			}
			refused, done, renewals := 0, 0, 0
			for range 40 {
				s := sides[random.IntN(2)]
				switch random.IntN(6) {
				case 5:
					theirs, before := testkit.ReadFiles(t, s.Top), w.state()
					renewed := must(w.Renew(t.Context(), s.Worktree))(t)
					after := w.state()
					delete(before, "refs") // the worktree's branch
					delete(after, "refs")
					require.Equal(t, before, after)
					if !renewed {
						require.Equal(t, theirs, testkit.ReadFiles(t, s.Top))
						break
					}
					from, _ := s.from(committed)
					for _, name := range names {
						require.Contains(t, []string{from[name], committed[name]}, theirs[name], "all work was landed")
					}
					require.Equal(t, committed, testkit.ReadFiles(t, s.Top))
					s.base, s.landings = committed, nil
					renewals++
				case 0, 1:
					change(s.Top)
				case 2:
					change(w.dir)
					if random.IntN(3) > 0 {
						w.commit(w.dir, nil)
						committed = testkit.ReadFiles(t, w.dir)
					}
				default:
					method := methods[random.IntN(4)]
					theirs, disk := testkit.ReadFiles(t, s.Top), testkit.ReadFiles(t, w.dir)
					ours := committed
					if method == worktree.Patch {
						ours = disk
					}
					from, commits := s.from(ours)
					want, conflicting := merge(from, ours, theirs)
					clean, overlap := conflicting == "", false
					for _, name := range names {
						overlap = overlap || want[name] != ours[name] && disk[name] != ours[name]
					}
					replayed := method != worktree.Rebase || replays(from, ours, append(commits, theirs))
					before := w.state()
					_, err := w.Land(t.Context(), s.Worktree, worktree.LandOptions{Method: method})
					var conflict *worktree.ConflictError
					var inTheWay *worktree.OverlapError
					switch {
					case errors.As(err, &conflict):
						require.False(t, clean, "%s: %v\nfrom %v\nours %v\ntheirs %v", method, err, from, ours, theirs)
					case errors.As(err, &inTheWay):
						require.True(t, clean && replayed && overlap, "%s: %v", method, err)
					case clean && !replayed:
						require.ErrorContains(t, err, "use merge or squash")
					default:
						require.NoError(t, err)
						require.True(t, clean && !overlap, "%s\nfrom %v\nours %v\ntheirs %v", method, from, ours, theirs)
					}
					if err != nil {
						refused++
						require.Equal(t, before, w.state())
						break
					}
					done++
					l := landing{theirs: theirs}
					for _, name := range names {
						if disk[name] != ours[name] {
							want[name] = disk[name]
						}
					}
					maps.DeleteFunc(want, func(_, text string) bool { return text == "" })
					require.Equal(t, want, testkit.ReadFiles(t, w.dir), "%s\nfrom %v\nours %v\ntheirs %v", method, from, ours, theirs)
					if method == worktree.Patch {
						l.result = want
					} else {
						for _, name := range names {
							if disk[name] != committed[name] {
								want[name] = committed[name]
							}
						}
						maps.DeleteFunc(want, func(_, text string) bool { return text == "" })
						committed = want
					}
					s.landings = append(s.landings, l)
					require.Equal(t, theirs, testkit.ReadFiles(t, s.Top))
				}
			}
			t.Log(refused, "refused,", done, "landed,", renewals, "renewed")
			w.healthy()
		})
	}
}
