package sqlite

import (
	"context"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// rankedAtMost is how many items a search ranks. To rank is to look at each of
// them, and words that are in more of them tell little.
const rankedAtMost = 1000

// search finds items by words: all of them must be there, the last may be the
// beginning of one. The best come first, or, where more than rankedAtMost are
// found, the newest.
func (q itemQueries) search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	match := matchQuery(words)
	if match == "" {
		return nil, nil
	}
	found, err := statement.One(ctx, q.s, statement.Value[int], "SELECT count(*) FROM (SELECT 1 FROM items_text WHERE items_text MATCH ? LIMIT ?)", match, rankedAtMost+1)
	if err != nil {
		return nil, err
	}
	rank, order := "items_text.rank", "items_text.rank"
	if found > rankedAtMost {
		rank, order = "0.0", "items_text.rowid DESC"
	}
	return statement.All(ctx, q.s, func(row statement.Scanner) (h domain.Hit, err error) {
		var snippet string
		var rank float64
		h.Item, err = scanItem(appended{row, []any{&snippet, &rank}})
		h.Snippet, h.Rank = snippet, rank
		return h, err
	}, "SELECT "+itemColumns+`, snippet(items_text, -1, '«', '»', '…', 16), `+rank+`
		FROM items_text JOIN items i ON i.id = items_text.rowid WHERE items_text MATCH ? ORDER BY `+order+` LIMIT ? OFFSET ?`, match, limit, offset)
}

// appended scans more columns behind those that are asked for.
type appended struct {
	row  statement.Scanner
	more []any
}

func (a appended) Scan(into ...any) error { return a.row.Scan(append(into, a.more...)...) }

// matchQuery quotes what a human typed, so that nothing in it is FTS5 syntax
// (https://sqlite.org/fts5.html#full_text_query_syntax).
func matchQuery(words string) string {
	var terms []string
	for _, w := range strings.Fields(strings.ReplaceAll(words, "\x00", " ")) { // a NUL would end the query
		terms = append(terms, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
	}
	if len(terms) == 0 {
		return ""
	}
	return strings.Join(terms, " ") + "*"
}

// Search finds items by words: all of them must be there, the last may be the
// beginning of one. The best come first; where there are very many, the
// newest, with rank 0.
func (s *Store) Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	for {
		waiting, err := s.unindexed(ctx, everything)
		if err != nil {
			return nil, err
		}
		if !waiting {
			return s.search(ctx, words, limit, offset)
		}
		if err := s.index(ctx, everything); err != nil {
			return nil, err
		}
	}
}
