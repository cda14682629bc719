package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 { // the second pass appends
		log := Open(Options{Level: slog.LevelWarn, Path: path})
		assert.Equal(t, path, log.Sink)
		log.Info("hidden")
		log.Level.Set(slog.LevelInfo)
		log.Info("shown", "n", 1)
		log.Close(time.Second)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(text), `level=INFO msg=shown n=1`))
	assert.NotContains(t, string(text), "hidden")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestLogFileThatCannotBeOpened(t *testing.T) {
	log := Open(Options{Path: filepath.Join(t.TempDir(), "no", "such", "log")})
	assert.Equal(t, "stderr", log.Sink)
	log.Close(time.Second)
}

func TestLevels(t *testing.T) {
	for text, want := range map[string]slog.Level{"debug": slog.LevelDebug, "Info": slog.LevelInfo, "WARN": slog.LevelWarn, "error": slog.LevelError} {
		var l Level
		require.NoError(t, l.UnmarshalText([]byte(text)))
		assert.Equal(t, want, l.Slog())
		assert.Equal(t, strings.ToLower(text), l.String())
	}
	var l Level
	for _, text := range []string{"", "loud", "info+1", "warning"} {
		assert.ErrorContains(t, l.UnmarshalText([]byte(text)), "debug, info, warn or error", text)
	}
}

// blocked is a log without a reader until it is opened.
type blocked struct {
	open chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.open
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got.Write(p)
}

// A log that is not read blocks no writer, takes bounded memory, and reports its lost lines.
func TestNobodyReadsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &blocked{open: make(chan struct{})}
		q := newQueue(dst)
		line := []byte(strings.Repeat("x", 999) + "\n")
		for range 10_000 {
			n, err := q.Write(line)
			require.NoError(t, err)
			require.Equal(t, len(line), n)
		}
		assert.LessOrEqual(t, len(q.lines), maxQueued)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		q.close(ctx)
		assert.Equal(t, time.Second, time.Since(began), "it does not wait for longer")
		close(dst.open)
		<-q.done
		text := dst.got.String()
		assert.Contains(t, text, "log lines dropped")
		assert.Less(t, len(text), 3*maxQueued)
	})
}

// Lines come out whole and in order, with several writers at the same time.
func TestLinesComeOutWhole(t *testing.T) {
	synctest.Test(t, testWholeLines)
}

func testWholeLines(t *testing.T) {
	dst := &blocked{open: make(chan struct{})}
	close(dst.open)
	q := newQueue(dst)
	const each = 2000
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range each {
				fmt.Fprintf(q, "%d %d\n", w, i)
				if i%100 == 0 {
					time.Sleep(time.Microsecond) // let the queue become empty now and then
				}
			}
		})
	}
	writers.Wait()
	q.close(context.Background())
	next := make([]int, 4)
	for line := range strings.Lines(dst.got.String()) {
		var w, i int
		_, err := fmt.Sscanf(line, "%d %d\n", &w, &i)
		require.NoError(t, err, "%q", line)
		require.Equal(t, next[w], i)
		next[w]++
	}
	assert.Equal(t, []int{each, each, each, each}, next)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no") }

func TestALogThatCannotBeWritten(t *testing.T) {
	q := newQueue(broken{})
	_, err := q.Write([]byte("x\n"))
	require.NoError(t, err)
	q.close(context.Background())
}
