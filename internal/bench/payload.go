package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Sizes of the large params in bytes. The bigger one stays below 10 MiB, the
// largest frame that duet-rpc takes, with room for the rest of the request.
const (
	megabyteSize    = 1_000_000
	nearMaximumSize = 9_500_000
)

var (
	megabyteParams    = sync.OnceValue(func() []byte { return largeParams(megabyteSize) })
	nearMaximumParams = sync.OnceValue(func() []byte { return largeParams(nearMaximumSize) })
)

// sourceText is what an editor sends most of: source code as a JSON string,
// mostly ASCII, an escape or two a line, and a few characters beyond.
var sourceText = []string{
	`func (q *queue) admit(ctx context.Context, job *job) error {\n`,
	`\tfor i := 0; i < len(q.waiting) && q.waiting[i] != nil; i++ {\n`,
	`\t\tq.log.Info(\"waiting\", \"run\", job.run, \"path\", \"C:\\\\tmp\\\\größe\") // naïve, aber schnell – 待ち行列\n`,
	`\t\tif err := q.waiting[i].start(ctx, &job.options); err != nil {\n`,
	`\t\t\treturn fmt.Errorf(\"start %s: %w\", job.name, err) // \u2192 reported, see \u00a7 4 🙂\n`,
	`\t\t}\n\t}\n\treturn nil\n}\n\n`,
}

// largeParams returns size bytes of compact JSON: one half source text in a
// single string, the other half an array of small objects.
func largeParams(size int) []byte {
	var b bytes.Buffer
	b.Grow(size + 1024)
	b.WriteString(`{"uri":"file:///project/queue.go","tokens":[`)
	for i := 0; b.Len() < size/2; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"line":%d,"column":%d,"length":%d,"kind":"identifier","text":"waiting","weight":%d.25,"local":%t,"scope":null}`,
			i/8, i%80, 1+i%12, i%100, i%3 == 0)
	}
	b.WriteString(`],"text":"`)
	const end = `"}`
	for i := 0; ; i++ {
		line := sourceText[i%len(sourceText)]
		if b.Len()+len(line)+len(end) > size {
			break
		}
		b.WriteString(line)
	}
	b.WriteString(strings.Repeat(" ", max(0, size-b.Len()-len(end))))
	b.WriteString(end)
	return b.Bytes()
}
