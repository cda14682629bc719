package pending_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/pending"
)

func contents(t *pending.Table[int]) (all []string) {
	for id, value := range t.All() {
		all = append(all, fmt.Sprint(id, "=", *value))
	}
	return all
}

func TestTable(t *testing.T) {
	var table pending.Table[int]
	take := func(id string) any {
		value, ok := table.Take([]byte(id))
		if !ok {
			return nil
		}
		return value
	}
	assert.Nil(t, take("1"))
	for i, id := range []string{"1", `"a"`, "1", "2", "1"} {
		table.Add([]byte(id), i)
	}
	assert.Equal(t, []string{"1=0", `"a"=1`, "1=2", "2=3", "1=4"}, contents(&table))
	assert.Equal(t, 5, table.Len())
	assert.Equal(t, 0, take("1"), "the oldest with an id comes first")
	assert.Equal(t, 3, take("2"))
	assert.Nil(t, take("2"))
	assert.Equal(t, []string{`"a"=1`, "1=2", "1=4"}, contents(&table))
	table.DeleteFunc(func(v *int) bool { *v += 10; return *v == 12 })
	assert.Equal(t, []string{`"a"=11`, "1=14"}, contents(&table))
	assert.Equal(t, 11, take(`"a"`))
	assert.Nil(t, take(`"a"`))
	assert.Equal(t, []string{"1=14"}, contents(&table))
	assert.Equal(t, 14, take("1"))
	table.Add([]byte("9"), 9)
	table.Clear()
	assert.Zero(t, table.Len())
	assert.Empty(t, contents(&table))
	assert.Nil(t, take("9"))
}

func message(t *testing.T, body string) *frame.Message {
	var m frame.Message
	require.True(t, frame.Parse([]byte(body), &m))
	return &m
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls pending.Calls
		var order []string
		for body, want := range map[string]pending.Response{
			`{"id":7,"result":[1]}`:             {Result: []byte(`[1]`)},
			`{"id":7}`:                          {Result: []byte(`null`)},
			`{"id":7,"result":1,"error":null}`:  {Result: []byte(`1`)},
			`{"id":7,"error":{"code":5}}`:       {Error: []byte(`{"code":5}`)},
			`{"id":7,"error":"no","result":{}}`: {Error: []byte(`"no"`)},
		} {
			order = nil
			call, err := calls.Begin(7, func(pending.Response) { order = append(order, "arrived") })
			require.NoError(t, err)
			assert.False(t, calls.Deliver(message(t, `{"id":8,"result":1}`)))
			assert.False(t, calls.Deliver(message(t, `{"id":"7","result":1}`)))
			assert.False(t, calls.Deliver(message(t, `{"result":1}`)))
			assert.True(t, calls.Deliver(message(t, body)))
			order = append(order, "delivered")
			assert.False(t, calls.Deliver(message(t, body)), "once")
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			got, err := call.Wait(ended)
			require.NoError(t, err, "it came before")
			assert.Equal(t, want, got)
			assert.Equal(t, []string{"arrived", "delivered"}, order)
		}

		call, err := calls.Begin(8, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err = call.Wait(ctx)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.False(t, calls.Deliver(message(t, `{"id":8,"result":1}`)), "too late")
		assert.False(t, call.Abandon())

		call, err = calls.Begin(9, nil)
		require.NoError(t, err)
		assert.True(t, call.Abandon())

		call, err = calls.Begin(10, nil)
		require.NoError(t, err)
		waited := make(chan error)
		go func() {
			_, err := call.Wait(context.Background())
			waited <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		calls.End(gone)
		calls.End(errors.New("the first one counts"))
		assert.Equal(t, gone, <-waited)
		_, err = calls.Begin(11, nil)
		assert.Equal(t, gone, err)
	})
}
