package query

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

const (
	// wordsAtMost bounds the cost of a search, which grows with its words.
	wordsAtMost = 64
	// searchesAtOnce leaves connections of the store to all other reads.
	searchesAtOnce = 2
)

// Search finds items by words: all of them must be there, the last may be the beginning of
// one. A word that is repeated counts once; more than 64 are an error. The best come first;
// where there are very many, the newest. Searches beyond the second wait; ctx ends the wait
// and the search.
func (q *Queries) Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	words, err := distinct(words)
	if err != nil {
		return nil, err
	}
	select {
	case q.searches <- struct{}{}:
		defer func() { <-q.searches }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	hits, err := q.store.Search(ctx, words, limit, offset)
	return hits, store.Explain(err)
}

// distinct leaves out words that stand there again, in whatever case. The last word stays
// the last.
func distinct(words string) (string, error) {
	fields := strings.Fields(words)
	seen := make(map[string]bool)
	count, kept := 0, len(fields)
	for i := len(fields) - 1; i >= 0; i-- {
		folded := strings.ToLower(fields[i])
		if seen[folded] {
			continue
		}
		seen[folded] = true
		kept--
		fields[kept] = fields[i]
		// The index splits what stands between blanks further.
		count += max(len(strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })), 1)
	}
	if count > wordsAtMost {
		return "", domain.Invalid("query", fmt.Sprintf("at most %d words", wordsAtMost), fmt.Sprintf("%d words", count))
	}
	return strings.Join(fields[kept:], " "), nil
}
