package changereview

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func changed(before, after *string) File {
	return fileOf("/", domain.Change{Path: "/a", Before: before, After: after}, nil)
}

// with returns the file with one hunk, or with -1 each part, in a state.
func (f File) with(hunk int, state string) File {
	f = f.clone()
	for i, part := range f.states() {
		if hunk < 0 || hunk == i {
			*part = state
		}
	}
	f.agree()
	return f
}

// numbered returns distinct lines with numbers in a range.
func numbered(from, to int) (text string) {
	for i := from; i <= to; i++ {
		text += fmt.Sprintf("line %d\n", i)
	}
	return text
}

func TestAHunkIsFoundWhereItIsNow(t *testing.T) {
	before := numbered(1, 20)
	after := strings.Replace(strings.Replace(before, "line 3\n", "three\n3b\n", 1), "line 15\n", "fifteen\n", 1)
	f := changed(&before, &after)
	require.Len(t, f.Hunks, 2)
	for name, c := range map[string]struct {
		now, want string
		trouble   trouble
	}{
		"as it was left":         {after, strings.Replace(after, "fifteen\n", "line 15\n", 1), noTrouble},
		"lines before":           {"new\nnew\n" + after, "new\nnew\n" + strings.Replace(after, "fifteen\n", "line 15\n", 1), noTrouble},
		"lines in between":       {strings.Replace(after, "line 8\n", "", 1), strings.Replace(strings.Replace(after, "line 8\n", "", 1), "fifteen\n", "line 15\n", 1), noTrouble},
		"lines behind":           {after + "more", strings.Replace(after, "fifteen\n", "line 15\n", 1) + "more", noTrouble},
		"the other one by hand":  {strings.Replace(after, "three\n3b\n", "line 3\n", 1), before, noTrouble},
		"this one by hand":       {strings.Replace("x\n"+after, "fifteen\n", "line 15\n", 1), strings.Replace("x\n"+after, "fifteen\n", "line 15\n", 1), noTrouble},
		"changed":                {strings.Replace(after, "fifteen\n", "15\n", 1), "", elsewhere},
		"changed around it":      {strings.Replace(after, "line 14\n", "14\n", 1), "", elsewhere},
		"gone":                   {numbered(1, 10), "", elsewhere},
		"empty":                  {"", "", elsewhere},
		"copied behind it":       {after + numbered(12, 14) + "fifteen\n" + numbered(16, 18), strings.Replace(after, "fifteen\n", "line 15\n", 1) + numbered(12, 14) + "fifteen\n" + numbered(16, 18), noTrouble},
		"copied, and both moved": {"x\n" + after + numbered(12, 14) + "fifteen\n" + numbered(16, 18), "", ambiguous},
		"without its last line":  {strings.TrimSuffix(after, "\n"), strings.TrimSuffix(strings.Replace(after, "fifteen\n", "line 15\n", 1), "\n"), noTrouble},
	} {
		got, trouble := apply(&c.now, f, f.with(1, domain.ChangeReverted))
		assert.Equal(t, c.trouble, trouble, name)
		if c.trouble == noTrouble && assert.NotNil(t, got, name) {
			assert.Equal(t, c.want, *got, name)
		}
	}
	got, trouble := apply(nil, f, f.with(1, domain.ChangeReverted))
	assert.Equal(t, elsewhere, trouble, "there is no file")
	assert.Nil(t, got)
}

// Identical changes in several places are decided separately.
func TestHunksThatAreTheSame(t *testing.T) {
	part := "{\n a\n b\n c\n d\n e\n f\n g\n}\n"
	before := strings.Repeat(part, 4)
	after := strings.ReplaceAll(before, " b\n", " B\n")
	f := changed(&before, &after)
	require.Len(t, f.Hunks, 4)
	ids := map[string]bool{}
	for _, h := range f.Hunks {
		ids[h.ID] = true
	}
	assert.Len(t, ids, 4)
	now := "first\n" + after
	got, trouble := apply(&now, f, f.with(2, domain.ChangeReverted))
	require.Equal(t, noTrouble, trouble)
	assert.Equal(t, "first\n"+strings.Repeat(strings.Replace(part, " b\n", " B\n", 1), 2)+part+strings.Replace(part, " b\n", " B\n", 1), *got)
	now = "first\n" + strings.Replace(after, "}\n{\n a\n B\n", "}\n{\n", 1) // one of them was removed
	_, trouble = apply(&now, f, f.with(2, domain.ChangeReverted))
	assert.Equal(t, ambiguous, trouble)
}

func TestAFileThatEndsInTheMiddleOfALine(t *testing.T) {
	before, after := "a\nb", "a\nb\n"
	f := changed(&before, &after)
	now := after + "more\n"
	_, trouble := apply(&now, f, f.with(0, domain.ChangeReverted))
	assert.Equal(t, elsewhere, trouble, "b and more would be one line")
	got, trouble := apply(&after, f, f.with(0, domain.ChangeReverted))
	require.Equal(t, noTrouble, trouble)
	assert.Equal(t, before, *got)
}

func TestFilesThatComeAndGo(t *testing.T) {
	text, empty, other, filled := "a\nb\n", "", "a\nb\nmine\n", "c\n"
	for name, c := range map[string]struct {
		before, after, now, want *string
		trouble                  trouble
	}{
		"made":                      {nil, &text, &text, nil, noTrouble},
		"made, and gone":            {nil, &text, nil, nil, noTrouble},
		"made, and changed":         {nil, &text, &other, nil, elsewhere},
		"made empty":                {nil, &empty, &empty, nil, noTrouble},
		"made empty, and filled":    {nil, &empty, &text, nil, elsewhere},
		"deleted":                   {&text, nil, nil, &text, noTrouble},
		"deleted, there again":      {&text, nil, &other, nil, elsewhere},
		"deleted, and brought back": {&text, nil, &text, &text, noTrouble},
		"emptied":                   {&text, &empty, &empty, &text, noTrouble},
		"emptied, and filled":       {&text, &empty, &filled, nil, elsewhere},
		"emptied, and undone":       {&text, &empty, &other, &other, noTrouble},
	} {
		f := changed(c.before, c.after)
		got, trouble := apply(c.now, f, f.with(-1, domain.ChangeReverted))
		assert.Equal(t, c.trouble, trouble, name)
		assert.Equal(t, c.want, got, name)
	}
}

// randomText returns few different lines, so that the same lines occur in many places.
func randomText(r *rand.Rand) string {
	ends := []string{"\n", "\n", "\n", "\r\n"}
	var b strings.Builder
	for range r.IntN(60) {
		b.WriteString(string("abcde"[r.IntN(5)]) + ends[r.IntN(len(ends))])
	}
	if r.IntN(3) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

func edited(r *rand.Rand, text string) string {
	list := lines(text)
	for range r.IntN(6) {
		at := r.IntN(len(list) + 1)
		switch {
		case r.IntN(2) == 0 || at == len(list):
			if at == len(list) && at > 0 && !strings.HasSuffix(list[at-1], "\n") {
				continue
			}
			list = slices.Insert(list, at, string("abcdexyz"[r.IntN(8)])+"\n")
		default:
			list = slices.Delete(list, at, at+1)
		}
	}
	return strings.Join(list, "")
}

// FuzzRevertAndReopen reverts and reopens changes in any order, also with other edits at the
// beginning and end of the file.
func FuzzRevertAndReopen(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := randomText(r)
		after := edited(r, before)
		if r.IntN(10) == 0 {
			after = randomText(r)
		}
		file := changed(&before, &after)
		if before == after {
			return
		}
		above, below := "", ""
		if r.IntN(2) == 0 {
			above = strings.Repeat("somebody else's\n", 1+r.IntN(9))
			if strings.HasSuffix(before, "\n") && strings.HasSuffix(after, "\n") {
				below = "and here\nno end"
			}
		}
		now := above + after + below
		for _, state := range []string{domain.ChangeReverted, domain.ChangeOpen, domain.ChangeReverted} {
			for _, i := range r.Perm(len(file.Hunks)) {
				next := file.with(i, state)
				got, trouble := apply(&now, file, next)
				if above+below != "" && trouble != noTrouble && (before == "" || after == "") {
					return // a change of the whole file cannot be distinguished from other content
				}
				require.Equal(t, noTrouble, trouble, "%q, as it was %q, as it was left %q", now, before, after)
				now, file = *got, next
				assert.Equal(t, above+*file.Expected()+below, now, "nothing else has changed")
			}
			want := after
			if state == domain.ChangeReverted {
				want = before
			}
			require.Equal(t, above+want+below, now, "of %q", before)
		}
	})
}

func TestRenames(t *testing.T) {
	file := func(path string, before, after *string) File {
		return fileOf("/p", domain.Change{Path: path, Before: before, After: after}, nil)
	}
	text := func(s string) *string { return &s }
	old := numbered(1, 10)
	edited := strings.Replace(old, "line 4\n", "four\n", 1)
	for name, c := range map[string]struct {
		files []File
		want  map[string]string
	}{
		"moved":       {[]File{file("/p/a", &old, nil), file("/p/b", nil, &old)}, map[string]string{"/p/b": "/p/a"}},
		"and edited":  {[]File{file("/p/b", nil, &edited), file("/p/a", &old, nil)}, map[string]string{"/p/b": "/p/a"}},
		"rewritten":   {[]File{file("/p/a", &old, nil), file("/p/b", nil, text(numbered(6, 20)))}, nil},
		"copied":      {[]File{file("/p/b", nil, &old), file("/p/c", &old, &edited)}, nil},
		"the closest": {[]File{file("/p/a", &old, nil), file("/p/b", nil, &edited), file("/p/c", nil, &old)}, map[string]string{"/p/c": "/p/a"}},
		"empty":       {[]File{file("/p/a", text(""), nil), file("/p/b", nil, text(""))}, nil},
	} {
		findRenames(c.files)
		var found map[string]string
		for _, f := range c.files {
			if f.RenamedFrom != "" {
				if found == nil {
					found = make(map[string]string)
				}
				found[f.Path] = f.RenamedFrom
			}
		}
		assert.Equal(t, c.want, found, name)
	}
}
