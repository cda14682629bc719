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

// Search finds items by words. All of them must occur; the last may be a prefix. A repeated word
// counts once; more than 64 words are an error. The best match comes first; among very many, the
// newest. A third concurrent search waits; ctx ends the wait and the search.
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

// distinct removes repeated words, ignoring case. The last word stays last.
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
		// The index splits words further.
		count += max(len(strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })), 1)
	}
	if count > wordsAtMost {
		return "", domain.Invalid("query", fmt.Sprintf("at most %d words", wordsAtMost), fmt.Sprintf("%d words", count))
	}
	return strings.Join(fields[kept:], " "), nil
}
