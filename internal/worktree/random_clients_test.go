//go:build clients && unix

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

// from returns the files that the worktree and the user have in common.
func (s side) from(users map[string]string) map[string]string {
	for _, last := range slices.Backward(s.landings) {
		counts := true
		for _, name := range names {
			if last.result != nil && last.theirs[name] != s.base[name] && last.result[name] != users[name] {
				counts = false
			}
		}
		if counts {
			return last.theirs
		}
	}
	return s.base
}

var names = []string{"a", "b", "c/d", "c/e", "f"}

// Two worktrees and the user change random files. A landing has the result of a plain merge of each
// file, or it fails and changes nothing.
func TestRandomLandings(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{11544894463796143488, 16106682688266096215, rand.Uint64(), rand.Uint64(), rand.Uint64()} {
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
				write(t, dir, map[string]string{name: text})
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
					for from, i := s.from(committed), 0; i < len(names); i++ {
						require.Contains(t, []string{from[names[i]], committed[names[i]]}, theirs[names[i]], "all work was landed")
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
					from := s.from(ours)
					want, clean, overlap := maps.Clone(ours), true, false
					for _, name := range names {
						switch {
						case theirs[name] == from[name] || theirs[name] == ours[name]:
							continue
						case ours[name] != from[name]:
							clean = false
						case theirs[name] == "":
							delete(want, name)
						default:
							want[name] = theirs[name]
						}
						overlap = overlap || disk[name] != ours[name]
					}
					before := w.state()
					_, err := w.Land(t.Context(), s.Worktree, worktree.LandOptions{Method: method})
					var conflict *worktree.ConflictError
					var inTheWay *worktree.OverlapError
					switch {
					case errors.As(err, &conflict):
						require.False(t, clean, "%s: %v\nfrom %v\nours %v\ntheirs %v", method, err, from, ours, theirs)
					case errors.As(err, &inTheWay):
						require.True(t, clean && overlap, "%s: %v", method, err)
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
